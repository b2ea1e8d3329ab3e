#' Modes of a density under differential privacy
#'
#' Releases the joint density of one to eight numeric columns once, under a stated (epsilon, delta), and reads its
#' modes (local maxima) from it, with standard errors that hold the privacy noise, the sampling of the records and
#' the smoothing bias.
#'
#' The guarantee: what is released is (`epsilon`, `delta`)-differentially private for replacing one record (or as
#' the [private_data()] says), given that the bounds are public. Everything in the result is a function of that one
#' release, so printing, plotting, saving and publishing it cost nothing more. The rows, and `data` itself, are
#' neither in the object nor in its call nor in the environment of its formula.
#'
#' A column may be named as `log(wage)`: the density is then that of the logarithm, and modes are reported on both
#' scales. Other transformations are refused, because their bounds would not be known.
#'
#' `subset` and `na.action` are refused: the number of rows is public, and it must not depend on their values. A row
#' with a missing value in a used column counts nothing. `weights` need a public ceiling: give them to
#' [private_data()].
#'
#' A data frame given here has the budget of this one call, and no record is kept. Whoever releases more than once
#' from the same rows must use one [private_data()].
#'
#' @param formula A one-sided formula such as `~ age + log(wage)`; `~ .` for all columns with bounds.
#' @param data A data frame, tibble or data.table, or the path of a CSV or Parquet file; a [private_data()]; or a
#'   released [surface()] (or a fit with one): reading its modes again costs nothing.
#' @param bounds PUBLIC bounds per column, on the original scale: `list(age = c(15, 90), wage = c(1000, 300000))`.
#'   They are never taken from the data. Not with a [private_data()], which has them.
#' @param epsilon Privacy loss of this release, > 0. There is no default.
#' @param delta In (0, 1), well below one over the number of rows. With a [private_data()] its budget's delta when
#'   omitted.
#' @param bandwidth Smoothing bandwidth. `"ladder"` (the default): one release for several bandwidths, read where it
#'   shows the most modes. `"private"`: the same, scaled to quartiles released within the same epsilon, for bounds
#'   that are many times too wide. `"reference"`, `"paper"`: one bandwidth by public facts. Or numbers in the units
#'   of the coordinates, for all or by name: `c(age = 2, "log(wage)" = 0.1)`; for dates a [difftime].
#' @param order Order of the kernel, 2 (the default) or 4.
#' @param resolution Public recording step by column, such as `c(age = 1)` for ages in whole years: a floor on the
#'   bandwidth.
#' @param n_modes Number of modes to report; found by significance when `NULL`.
#' @param false_mode_rate Chance that any further mode is only noise (0.05). The highest peak is always reported, marked when
#'   noise explains it.
#' @param n_features Number of random frequencies when there are four or more columns.
#' @param mechanism `"surface"`, or `"grams"`: the published DP-GRAMS, made sound, to be compared with.
#' @param grams Options of `mechanism = "grams"`, made with [grams_options()].
#' @param label Label of the release in the ledger.
#' @param seed For tests and papers only: reproducible noise. The result is then marked as simulated, and is NOT
#'   private.
#' @param subset,weights,na.action Refused, with the reason: see Details.
#' @param ... Not used: an unknown argument is refused.
#' @return An object of class `dp_modes` and `dp_result`: a plain list, safe to save. Methods: [print()], [summary()],
#'   [format()], [coef()], [confint()], [predict()], [plot()], [as.data.frame()], `tidy()`, `glance()`, `augment()`,
#'   `ggplot2::autoplot()`; and [privacy()], [surface()].
#' @references Bhattacharjee and Auddy, Differentially Private Nonparametric Modal Learning with Applications to
#'   Regression and Clustering, arXiv 2607.29675: the modes' theory, and DP-GRAMS. The release of the whole surface
#'   follows Hall, Rinaldo and Wasserman (2013), Differential privacy for functions and functional data.
#' @seealso [preview_modes()] to plan a release without reading a row.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~ age + log(wage), dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)), resolution = c(age = 1),
#'   epsilon = 1, delta = 1e-6
#' )
#' fit
#' confint(fit)
#' plot(fit)
#' @export
dp_modes <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., bandwidth = NULL,
                     order = NULL, resolution = NULL, n_modes = NULL, false_mode_rate = NULL, n_features = NULL,
                     mechanism = c("surface", "grams"), grams = NULL, label = NULL, seed = NULL, subset, weights,
                     na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  model <- mode_model(formula, data, bounds, list(
    bandwidth = wire_value(bandwidth), order = order, resolution = wire_named(resolution, "resolution"),
    n_modes = n_modes, false_mode_rate = false_mode_rate, n_features = n_features,
    mechanism = choice(mechanism, c("surface", "grams")), grams = wire_grams(grams)
  ))
  fit <- drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  found <- call_python("fit_density_modes", data = model$data, options = model$options, fit = fit)
  new_result(found, call = call, formula = bare_formula(formula))
}

#' Plan a release of modes without reading a row
#'
#' Tells the cost and the noise of a release in the columns' units: nothing is read, nothing is charged.
#'
#' @inheritParams dp_modes
#' @param n Number of records to plan for; the public number when `NULL`. With `by` each level is taken to hold an equal
#'   part of them, and noise and errors are those of one level.
#' @param spread Standard deviation of a mode's bump by coordinate, such as `c(age = 5)`; a tenth of the box when
#'   `NULL`. In a regression: of the response about its branch, and of predictors taken as evenly spread, over all of
#'   the box when `NULL`.
#' @return A list of class `dp_preview`: `density_noise_sd`, `epsilon_after`, `fits` and, for modes that hold a given
#'   share of the records, `modes`: the chance that they are found, and their standard errors. For clusters these are
#'   the fit's own, or with `centres = "modes"` those of modes. In its place a regression has `branches`, or with
#'   `kind = "linear"` the standard errors of a `line`. `as.data.frame()` takes it.
#' @examplesIf dpmode:::python_works()
#' preview_modes(~ age + log(wage), dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)), resolution = c(age = 1),
#'   epsilon = 1, delta = 1e-6
#' )
#' @export
preview_modes <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., n = NULL, spread = NULL,
                          bandwidth = NULL, order = NULL, resolution = NULL, n_modes = NULL,
                          false_mode_rate = NULL, n_features = NULL, mechanism = c("surface", "grams"),
                          grams = NULL) {
  refuse_dots(...)
  model <- mode_model(formula, data, bounds, list(
    bandwidth = wire_value(bandwidth), order = order, resolution = wire_named(resolution, "resolution"),
    n_modes = n_modes, false_mode_rate = false_mode_rate, n_features = n_features,
    mechanism = choice(mechanism, c("surface", "grams")), grams = wire_grams(grams)
  ))
  preview <- drop_null(list(epsilon = epsilon, delta = delta, n = n, spread = wire_named(spread, "spread")))
  found <- call_python("preview_density_modes", data = model$data, options = model$options, preview = preview)
  structure(found, class = "dp_preview")
}

#' @export
print.dp_preview <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @export
format.dp_preview <- function(x, ...) strsplit(x$text, "\n", fixed = TRUE)[[1L]]

#' @export
as.data.frame.dp_preview <- function(x, ...) Find(Negate(is.null), list(x$modes, x$branches, x$line))

# The data and the options of DensityModes, from formula, data and bounds.
mode_model <- function(formula, data, bounds, options) {
  if (is_surface(data)) return(surface_model(formula, data, bounds, options))
  terms <- if (missing(formula)) abort("FormulaError", "formula is missing; give e.g. ~ age + log(wage)") else read_terms(formula)
  bounds <- wire_bounds(bounds)
  options$columns <- as_column_list(terms$columns)
  options$bounds <- bounds
  if (length(terms$log)) options$log <- as.list(terms$log)
  names <- unique(c(names(bounds), terms$columns))
  list(data = wire_source(data, if (length(names)) names), options = drop_null(options))
}

# A surface has coordinates such as "log(wage)"; they are named as they are.
surface_model <- function(formula, data, bounds, options) {
  if (!is.null(bounds)) abort("InvalidArgument", "a surface has its bounds; do not give bounds again")
  terms <- if (missing(formula)) list(columns = NULL) else read_terms(formula)
  logs <- terms$columns %in% terms$log
  options$columns <- as_column_list(ifelse(logs, paste0("log(", terms$columns, ")"), terms$columns))
  if (identical(options$mechanism, "surface")) options$mechanism <- NULL
  list(data = wire_source(data), options = drop_null(options))
}

is_surface <- function(data) inherits(data, "dp_surface") || inherits(data, "dp_result")

as_column_list <- function(columns) if (length(columns)) as.list(columns) else NULL

# Named numbers as a named list: c(age = 1) and list(age = 1) are the same.
wire_named <- function(x, what) {
  if (is.null(x)) return(NULL)
  if (is.null(names(x)) || !all(nzchar(names(x)))) {
    abort("InvalidArgument", what, " must name its columns, such as c(age = 1)")
  }
  lapply(split_names(x), wire_value)
}

split_names <- function(x) if (is.list(x)) x else stats::setNames(lapply(seq_along(x), function(i) unname(x[i])), names(x))

wire_grams <- function(grams) {
  if (is.null(grams)) return(NULL)
  if (!inherits(grams, "dp_grams_options")) {
    abort("InvalidArgument", "grams must be made with grams_options(), got ", class(grams)[[1L]])
  }
  named_list(unclass(grams))
}

#' Options of DP-GRAMS
#'
#' For `dp_modes(..., mechanism = "grams")`, by the paper's names. What is `NULL` follows a public rule. Lengths are
#' in bandwidths.
#'
#' @param T Rounds.
#' @param m Minibatch per round, without replacement; all records by default.
#' @param eta Step in squared bandwidths (1).
#' @param A Clipping length of the gradient per bandwidth, in density units.
#' @param p_floor Least density to divide by.
#' @param kernel `"gaussian"`, `"gaussian4"` or `"legendre4"`.
#' @param noise `"correlated"` or `"independent"` over the ascents of one round.
#' @param accountant `"pld"`, `"rdp"` or `"published"`.
#' @param k Number of ascents.
#' @param eps_init Share of epsilon for the starting points (0.1).
#' @param h_dap Radius within which a candidate start counts records (1).
#' @param rho_init Candidates this close to a chosen start leave the pool.
#' @param candidates PUBLIC candidate starts, a matrix with one row each.
#' @param density_share Share of each round's squared privacy for densities (0.2).
#' @param finish `"regression"` or `"iterates"`.
#' @return A list of class `dp_grams_options`.
#' @examples
#' grams_options(T = 20, k = 15)
#' @export
grams_options <- function(T = NULL, m = NULL, eta = NULL, A = NULL, p_floor = NULL, kernel = NULL, noise = NULL,
                          accountant = NULL, k = NULL, eps_init = NULL, h_dap = NULL, rho_init = NULL,
                          candidates = NULL, density_share = NULL, finish = NULL) {
  if (!is.null(candidates)) candidates <- unname(as.matrix(candidates))
  structure(drop_null(list(
    T = T, m = m, eta = eta, A = A, p_floor = p_floor, kernel = kernel, noise = noise, accountant = accountant,
    k = k, eps_init = eps_init, h_dap = h_dap, rho_init = rho_init, candidates = candidates,
    density_share = density_share, finish = finish
  )), class = "dp_grams_options")
}

#' @export
print.dp_grams_options <- function(x, ...) {
  cat("Options of DP-GRAMS (the others follow public rules):\n")
  for (name in names(x)) cat("  ", name, ": ", paste(format(x[[name]]), collapse = " "), "\n", sep = "")
  invisible(x)
}
