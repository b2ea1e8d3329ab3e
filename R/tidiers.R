#' Tidy tables of private modes
#'
#' @param x A result of [dp_modes()].
#' @param conf.int Whether to include the interval's ends.
#' @param conf.level Coverage of the intervals.
#' @param newdata New data to tell the modes of. Required: the rows of the fit are not in the result. When it holds the
#'   private rows themselves, the answer is NOT covered by the guarantee.
#' @param type See [predict.dp_modes()].
#' @param ... Not used.
#' @return `tidy()`: one row per mode and coordinate with `component` (the number of the mode), `term`, `estimate`,
#'   `std.error` and its parts `std.error.privacy`, `std.error.sampling`, `std.error.bias`; `conf.low`, `conf.high`;
#'   `proportion` (the share of the density in the mode's basin), `statistic` (height over its standard error),
#'   `reliable`, `significant`; dates are seconds since 1970 there, durations seconds. `glance()`: one row: number of modes,
#'   `nobs` as released, the guarantee, noise. `augment()`: `newdata` with the column `.component`.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' tidy(fit)
#' glance(fit)
#' augment(fit, data.frame(age = c(20, 50)))
#' @name tidiers
NULL

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

#' @importFrom generics augment
#' @export
generics::augment

#' @rdname tidiers
#' @export
tidy.dp_modes <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  e <- if (conf.int) at_level(x, conf.level)$estimates else x$estimates
  table <- data.frame(
    component = e$mode, term = e$term, estimate = e$estimate, std.error = e$std_error,
    std.error.privacy = e$se_privacy, std.error.sampling = e$se_sampling, std.error.bias = e$se_bias
  )
  if (conf.int) table <- cbind(table, conf.low = e$lower, conf.high = e$upper)
  as_tidy(cbind(
    table, proportion = e$share, statistic = e$height_z, reliable = e$reliable, significant = e$significant
  ))
}

#' @rdname tidiers
#' @export
glance.dp_modes <- function(x, ...) {
  p <- x$privacy
  of <- function(name) if (is.null(p) || is.null(p[[name]])) NA else p[[name]]
  as_tidy(data.frame(
    n.modes = x$n_modes, nobs = x$n_records, epsilon = of("epsilon"), delta = of("delta"),
    adjacency = of("adjacency"), unit = of("unit"), mechanism = of("mechanism"), noise.scale = of("noise_scale"),
    density.noise.sd = x$noise_sd, unreliable.modes = x$diagnostics$unreliable_modes,
    insignificant.modes = x$diagnostics$insignificant_modes, simulated = x$simulated
  ))
}

#' @rdname tidiers
#' @export
augment.dp_modes <- function(x, newdata, type = c("nearest", "basin"), ...) {
  if (missing(newdata)) refuse_rows("augment() without newdata")
  out <- as.data.frame(newdata)
  out$.component <- predict(x, newdata, type = match.arg(type))
  as_tidy(out)
}

# A tibble where that package is there, as broom returns one.
as_tidy <- function(x) if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(x) else x
