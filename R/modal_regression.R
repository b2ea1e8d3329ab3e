#' Modal regression under differential privacy
#'
#' The typical responses at each value of one to three predictors: the branches of conditional modes, read from one
#' release of the joint density. Where the response has several typical values there are several branches; a mean
#' would lie between them.
#'
#' @inheritParams dp_modes
#' @param formula Response and predictors, such as `log(wage) ~ age`. Terms act row by row (`log`, `sqrt`, arithmetic
#'   inside `I()`); bounds are of the ORIGINAL columns. What would be learned from the data (`poly`, `scale`) is refused.
#'   Names that are not R's stand between back quotes.
#' @param by Name of a grouping column: one regression per declared level, at the privacy cost of one.
#' @param levels The PUBLIC levels of `by`, known without looking at the rows. Rows of another level count nothing.
#' @param bandwidth `"regression"` (the default): by public facts alone; or as in [dp_modes()].
#' @param kind Kind of the curves; see Details.
#' @param false_branch_rate Chance that any certified branch is only noise (0.05).
#' @param n_features Number of random frequencies with three predictors.
#' @param mechanism `"surface"` (the default); or `"grams"`: the paper's DP-PMS, made sound, which protects the RESPONSES
#'   only, and whose result has no surface.
#' @param public_predictors With `"grams"`: the predictor of each row, PUBLIC, in the rows' order.
#' @details `kind = "branches"` (the default): curves, wherever they bend. `kind = "linear"`: the line (or plane) with the most
#'   density along it (Yao and Li 2014), for one or two predictors; `coef()`, `confint()`, `vcov()` and `tidy()` are then those
#'   of its coefficients, and the branches stay in `$branches`.
#' @return An object of class `dp_modal_regression` and `dp_result`: a plain list, safe to save.
#' @seealso [predict.dp_modal_regression()]
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modal_regression(y ~ x, dp_data("sinusoid", n = 2400, seed = 1),
#'   bounds = list(x = c(0, 1), y = c(-1, 2.5)), epsilon = 2, delta = 1e-5
#' )
#' fit
#' predict(fit, data.frame(x = c(0.25, 0.5)))
#' plot(fit)
#' @export
dp_modal_regression <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., by = NULL,
                                levels = NULL, bandwidth = NULL, resolution = NULL, order = NULL, kind = NULL,
                                false_branch_rate = NULL, n_features = NULL, mechanism = NULL,
                                public_predictors = NULL, grams = NULL, label = NULL, seed = NULL,
                                subset, weights, na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  model <- regression_model(if (!missing(formula)) formula, data, bounds, list(
    by = by, levels = if (!is.null(levels)) as.list(as_plain_levels(levels)), bandwidth = wire_value(bandwidth),
    resolution = wire_named(resolution, "resolution"), order = order, kind = kind,
    false_branch_rate = false_branch_rate, n_features = n_features, mechanism = mechanism,
    public_predictors = if (!is.null(public_predictors)) unname(as.matrix(public_predictors)), grams = wire_grams(grams)
  ))
  fit <- drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  found <- call_python(
    "fit_modal_regression", data = model$data, formula = model$formula, options = model$options, fit = fit
  )
  new_result(found, call = call, formula = bare_formula(formula))
}

#' @rdname preview_modes
#' @param by,levels,kind,false_branch_rate,public_predictors As in [dp_modal_regression()].
#' @export
preview_regression <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., n = NULL,
                               spread = NULL, by = NULL, levels = NULL, bandwidth = NULL, resolution = NULL,
                               order = NULL, kind = NULL, false_branch_rate = NULL, n_features = NULL,
                               mechanism = NULL, public_predictors = NULL, grams = NULL) {
  refuse_dots(...)
  model <- regression_model(if (!missing(formula)) formula, data, bounds, list(
    by = by, levels = if (!is.null(levels)) as.list(as_plain_levels(levels)), bandwidth = wire_value(bandwidth),
    resolution = wire_named(resolution, "resolution"), order = order, kind = kind,
    false_branch_rate = false_branch_rate, n_features = n_features, mechanism = mechanism,
    public_predictors = if (!is.null(public_predictors)) unname(as.matrix(public_predictors)), grams = wire_grams(grams)
  ))
  preview <- drop_null(list(epsilon = epsilon, delta = delta, n = n, spread = wire_named(spread, "spread")))
  structure(call_python(
    "preview_modal_regression", data = model$data, formula = model$formula, options = model$options, preview = preview
  ), class = "dp_preview")
}

regression_model <- function(formula, data, bounds, options) {
  if (!inherits(formula, "formula") || length(formula) != 3L) {
    abort("FormulaError", "formula must name a response and predictors, such as log(wage) ~ age")
  }
  bounds <- wire_bounds(bounds)
  if (!is.null(bounds)) options$bounds <- bounds
  columns <- unique(c(names(bounds), all.vars(formula), options$by))
  list(data = wire_source(data, columns), formula = formula_text(formula), options = drop_null(options))
}

as_plain_levels <- function(levels) if (is.factor(levels)) as.character(levels) else levels

#' Predictions of a modal regression
#'
#' Functions of the release and of `newdata` alone: they cost nothing.
#'
#' @param object A result of [dp_modal_regression()].
#' @param newdata A data frame with the predictors (and the grouping column) on their original scales.
#' @param interval `"confidence"`: pointwise intervals of the branches. `"prediction"`: the regions of highest conditional
#'   density, where the response of a new record lies; there may be several intervals per row. `"none"`: only the
#'   estimates.
#' @param level Coverage of the intervals.
#' @param type `"branches"`, or `"mean"` for the conditional mean read from the same release.
#' @param certified_only Whether to leave out branches that cannot be told from noise.
#' @param ... Not used.
#' @return A long data frame: `row` (of `newdata`), `branch` (or `interval`), `estimate`, `lower`, `upper`, `share`,
#'   `certified`, `status`; for a logarithm also the response on its own scale. A row without any has one line of `NaN`,
#'   and its `status` says why.
#' @export
predict.dp_modal_regression <- function(object, newdata, interval = c("confidence", "prediction", "none"), level = 0.95,
                                        type = c("branches", "mean"), certified_only = FALSE, ...) {
  if (missing(newdata)) refuse_rows("predict() without newdata")
  refuse_dots(...)
  interval <- match.arg(interval)
  type <- match.arg(type)
  what <- if (type == "mean") "mean" else if (interval == "prediction") "region" else "branches"
  out <- call_python(
    "predict_regression", state = object$state, new = wire_predictors(newdata), what = what, level = level,
    certified_only = certified_only
  )
  if (interval == "none") {
    shown <- as.character(object$coordinates$column[[match(object$response, terms_of(object))]])
    out <- out[!names(out) %in% c("lower", "upper", paste0(shown, c("_lower", "_upper")))]
  }
  out
}

# Grouping columns travel too, so text and factors are kept.
wire_predictors <- function(newdata) {
  if (!is.data.frame(newdata)) {
    abort("InvalidArgument", "newdata must be a data frame with the predictors, got ", class(newdata)[[1L]])
  }
  usable <- vapply(newdata, function(x) is.null(dim(x)) && (is.atomic(x) || is.factor(x)) && !is.complex(x), NA)
  wire_frame(newdata, names(newdata)[usable])
}

#' Estimates and tables of a modal regression
#'
#' @param object,x A result of [dp_modal_regression()].
#' @param parm Numbers of branches to keep; all when omitted.
#' @param level,conf.level Coverage of each interval on its own.
#' @param conf.int Whether to include the intervals.
#' @param newdata New predictor values.
#' @param row.names,optional Not used.
#' @param ... Not used.
#' @param group,source For `vcov()` of a line: which level of the grouping column, and which part of the error: `"total"`,
#'   `"privacy"` or `"sampling"`.
#' @return For a line (`kind = "linear"`) the coefficients, named by term (dates count in seconds since 1970, durations in
#'   seconds). Otherwise, `coef()` and `as.data.frame()`: the branches on the public grid, one row per grid point and branch.
#'   Where the response is a date or a duration, `estimate` counts seconds (since 1970) and a column of the response's name
#'   has it as such. `confint()`: a matrix with the ends for these rows. `tidy()`: the same with broom's names: `component` is
#'   the branch, `proportion` its share of the conditional mass, `statistic` its density over its standard deviation.
#'   `glance()`: one row. `augment()`: the predictions joined to the rows of `newdata`.
#' @export
coef.dp_modal_regression <- function(object, ...) {
  if (!is_line(object)) return(object$branches)
  stats::setNames(object$coefficients$estimate, coefficient_names(object))
}

is_line <- function(x) !is.null(x$coefficients)

coefficient_names <- function(x) {
  terms <- as.character(x$coefficients$term)
  if (is.null(x$by)) terms else paste(x$coefficients[[x$by]], terms, sep = ":")
}

#' @rdname coef.dp_modal_regression
#' @export
vcov.dp_modal_regression <- function(object, group = NULL, source = c("total", "privacy", "sampling"), ...) {
  out <- call_python("covariance_regression", state = object$state, group = group, source = match.arg(source))
  terms <- unique(as.character(object$coefficients$term))
  dimnames(out) <- list(terms, terms)
  out
}

#' @rdname coef.dp_modal_regression
#' @export
as.data.frame.dp_modal_regression <- function(x, row.names = NULL, optional = FALSE, ..., level = 0.95) {
  at_level(x, level)$branches
}

#' @rdname coef.dp_modal_regression
#' @export
confint.dp_modal_regression <- function(object, parm, level = 0.95, ...) {
  found <- at_level(object, level)
  b <- if (is_line(object)) found$coefficients else found$branches
  if (is_line(object)) {
    names <- coefficient_names(object)
    if (!missing(parm)) b <- b[keep <- names %in% parm | seq_along(names) %in% parm, ]
    out <- cbind(b$lower, b$upper)
    dimnames(out) <- list(if (missing(parm)) names else names[keep], percent_names(level))
    return(out)
  }
  if (!missing(parm)) b <- b[b$branch %in% parm, ]
  keys <- b[c(grid_columns(b), "branch")]
  out <- cbind(b$lower, b$upper)
  dimnames(out) <- list(do.call(paste, c(lapply(keys, key_label), sep = ":")), percent_names(level))
  out
}

key_label <- function(key) if (inherits(key, "POSIXct")) date_text(as.double(key)) else format(key, trim = TRUE, digits = 6L)

# Grouping column and predictors: all before `branch`.
grid_columns <- function(b) names(b)[seq_len(match("branch", names(b)) - 1L)]

#' @rdname coef.dp_modal_regression
#' @export
tidy.dp_modal_regression <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  if (is_line(x)) return(tidy_line(if (conf.int) at_level(x, conf.level) else x, conf.int))
  b <- if (conf.int) at_level(x, conf.level)$branches else x$branches
  table <- cbind(b[grid_columns(b)], data.frame(
    component = b$branch, term = x$response, estimate = b$estimate, std.error = b$std_error,
    std.error.privacy = b$privacy, std.error.sampling = b$sampling
  ))
  if (conf.int) table <- cbind(table, conf.low = b$lower, conf.high = b$upper)
  as_tidy(cbind(table, proportion = b$share, statistic = b$snr, certified = b$certified))
}

tidy_line <- function(x, conf.int) {
  k <- x$coefficients
  z <- k$estimate / k$std_error
  table <- cbind(if (is.null(x$by)) k["term"] else k[c(x$by, "term")], data.frame(
    estimate = k$estimate, std.error = k$std_error, std.error.privacy = k$privacy, std.error.sampling = k$sampling,
    statistic = z, p.value = 2 * stats::pnorm(-abs(z))
  ))
  if (conf.int) table <- cbind(table, conf.low = k$lower, conf.high = k$upper)
  as_tidy(table)
}

#' @rdname coef.dp_modal_regression
#' @export
glance.dp_modal_regression <- function(x, ...) {
  p <- x$privacy
  of <- function(name) if (is.null(p) || is.null(p[[name]])) NA else p[[name]]
  as_tidy(data.frame(
    n.branches = sum(unlist(x$n_branches)), certified.branches = x$diagnostics$certified_branches, nobs = x$n_records,
    epsilon = of("epsilon"), delta = of("delta"), adjacency = of("adjacency"), unit = of("unit"),
    mechanism = of("mechanism"), noise.scale = of("noise_scale"), density.noise.sd = x$noise_sd, simulated = x$simulated
  ))
}

#' @rdname coef.dp_modal_regression
#' @export
augment.dp_modal_regression <- function(x, newdata, ...) {
  if (missing(newdata)) refuse_rows("augment() without newdata")
  p <- predict(x, newdata, ...)
  given <- as.data.frame(newdata)[p$row, , drop = FALSE]
  added <- data.frame(
    .component = p$branch, .fitted = p$estimate, .lower = p$lower, .upper = p$upper, .certified = p$certified,
    .status = p$status
  )
  as_tidy(`row.names<-`(cbind(given, added), NULL))
}

#' @export
print.dp_modal_regression <- function(x, digits = 4L, ...) {
  cat(format(x, digits = digits, ...), sep = "\n")
  invisible(x)
}

#' @export
format.dp_modal_regression <- function(x, digits = 4L, ...) {
  if (is_line(x)) return(c(regression_head(x), line_text(x, digits)))
  mass <- branch_shares(x)
  # DP-PMS releases no density between the branches, hence no shares.
  has_shares <- isTRUE(any(mass$mass > 0))
  shares <- if (nrow(mass)) utils::capture.output(print(utils::head(mass, 8L), digits = digits, row.names = FALSE)) else "  none"
  if (nrow(mass) > 8L) shares <- c(shares, paste("  and", nrow(mass) - 8L, "more"))
  c(
    regression_head(x),
    paste0(
      sum(unlist(x$n_branches)), " branch(es), ", x$diagnostics$certified_branches, " certified",
      if (has_shares) "; share of the records in each:" else "."
    ),
    if (has_shares) c(shares, ""),
    if (has_shares && any(mass$certified != "yes")) {
      "Where a branch is not certified noise alone may explain it; plot() has it dashed there."
    },
    if (has_shares) {
      paste0("Spread around the nearest branch: ", spread_text(x, digits))
    },
    "predict() gives the branches anywhere, plot() draws them; summary() has the full report."
  )
}

# Share of each branch, and over how much of it the branch is told from noise, as in the summary.
branch_shares <- function(x) {
  out <- x$mass
  b <- x$branches
  key <- function(table) if (is.null(x$by)) table$branch else paste(table[[x$by]], table$branch)
  part <- tapply(as.logical(b$certified), factor(key(b), unique(key(out))), mean)[as.character(key(out))] |> as.vector()
  out$certified <- ifelse(part > 0.5, "yes", ifelse(part > 0, "in part", "no"))
  out
}

regression_head <- function(x) {
  c(
    paste0(
      if (x$simulated) "Modal regression, simulated noise (NOT PRIVATE)," else "Private modal regression", " of ",
      x$formula_text
    ),
    call_lines(x), privacy_lines(x), ""
  )
}

line_text <- function(x, digits) {
  k <- x$coefficients
  table <- cbind(Estimate = k$estimate, `Std. Error` = k$std_error, `z value` = k$estimate / k$std_error)
  rownames(table) <- coefficient_names(x)
  lost <- !is.finite(k$std_error)
  where <- if (is.null(x$by)) "" else paste(" for", paste(unique(k[[x$by]][lost]), collapse = ", "))
  table[lost, ] <- NA
  c(
    "The line with the most density along it:",
    utils::capture.output(print(table, digits = digits, na.print = "--")),
    if (any(lost)) paste0("No line stands out", where, "."),
    if (any(x$coordinates$kind != "number")) "Dates and durations count in seconds, dates from 1970.", "",
    paste0("Spread around the line or the nearest branch: ", spread_text(x, digits))
  )
}

# Spread of the response, by level where there are groups.
spread_text <- function(x, digits) {
  spread <- width_text(unlist(x$residual_scale), kind_of(x, match(x$response, terms_of(x))), digits)
  known <- is.finite(unlist(x$residual_scale))
  spread[!known] <- "--"
  if (is.null(x$by)) return(spread)
  # The levels where nothing stands out of the noise come last, together.
  none <- if (any(!known)) paste("nothing stands out for", paste(level_names(x)[!known], collapse = ", "))
  paste(c(if (any(known)) paste(spread[known], "for", level_names(x)[known]), none), collapse = ", ")
}
