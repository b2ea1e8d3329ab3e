#' Data to try things on
#'
#' `"wages"`: age and yearly wage of 178,122 earners of the US Current Population Survey's public-use file (CC0). One
#' row per tax unit whose primary adult earned a wage; the survey's weights are not included, so that shares describe
#' the sample. The other names are simulated designs of the paper that this package starts from.
#'
#' @param name `"wages"`, or a simulated design: `"four_gaussians"`, `"five_t"`, `"three_levels"`, `"sinusoid"`.
#' @param n,seed Number of rows and seed of a simulated design.
#' @return A data frame. None of these is private.
#' @examplesIf dpmode:::python_works()
#' head(dp_data("wages"))
#' head(dp_data("four_gaussians", n = 1000, seed = 1))
#' @export
dp_data <- function(name = "wages", n = NULL, seed = NULL) {
  do.call(call_python, c(list("dataset"), drop_null(list(name = name, n = n, seed = seed))))
}
