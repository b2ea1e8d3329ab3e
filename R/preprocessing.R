#' Location and scale of columns under differential privacy
#'
#' The median and the spread of each column, from quartiles that are released by exact exponential mechanisms. What
#' `scale()` would do to private rows for free is charged here, and stands in the ledger.
#'
#' @inheritParams dp_modes
#' @param formula A one-sided formula such as `~ age + log(wage)`; `~ .` for all columns with bounds.
#' @param data A data frame, tibble or data.table, or the path of a CSV or Parquet file; or a [private_data()].
#' @return An object of class `dp_scale` and `dp_result`: a plain list, safe to save. `predict()` scales new or public data;
#'   `dp_pca()` takes it as `centre` and `scale`. [coef()] is a matrix with the columns `location` (the median) and `scale`
#'   (the distance of the quartiles over 1.349: the standard deviation of a normal column).
#' @details With d columns each draw has about 1/sqrt(d) of the epsilon. At 1000 records and `epsilon = 0.1` neither location
#'   nor scale is of use: state public numbers instead.
#' @seealso [dp_pca()], [dp_pca_clusters()]
#' @examplesIf dpmode:::python_works()
#' scaled <- dp_scale(~ age + log(wage), dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)), epsilon = 0.2, delta = 1e-6
#' )
#' scaled
#' predict(scaled, data.frame(age = c(25, 60), wage = c(20000, 90000)))
#' @export
dp_scale <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., label = NULL, seed = NULL, subset,
                     weights, na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  model <- mode_model(formula, with_rows(data), bounds, list())
  found <- call_python(
    "fit_scaler", data = model$data, options = model$options,
    fit = drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  )
  new_result(found, call = call, formula = bare_formula(formula))
}

#' Principal components under differential privacy
#'
#' Components of rows that are clipped to a ball, from their second moments, released once. What `prcomp()` would do to
#' private rows for free is charged here, and stands in the ledger.
#'
#' @inheritParams dp_scale
#' @param formula A one-sided formula of number columns, such as `~ .`; no logarithms.
#' @param n_components Number of components.
#' @param radius Rows farther from the centre than this, in scales, are moved to this distance along their ray. PUBLIC, chosen
#'   without looking at the rows; somewhat below the typical distance works best, since the noise grows with its square.
#'   `"private"` releases the lower quartile of the distances for it. There is no default.
#' @param centre `"private"`: the mean, released first within the same epsilon. `"box"`: the middle of the bounds. Or PUBLIC
#'   numbers by column, such as `c(x = 0, y = 10)`, or a [dp_scale()].
#' @param scale What the columns are divided by: half the width of their bounds (`"box"`), or PUBLIC numbers, one for all or by
#'   column, or a [dp_scale()].
#' @param whiten Whether scores have unit variance.
#' @return An object of class `dp_pca` and `dp_result`: a plain list, safe to save. [coef()] gives the loadings, `predict()`
#'   the scores of new or public data, [tidy()] the variances with their errors and the angle by which the noise turns
#'   each component.
#' @seealso [dp_pca_clusters()], [dp_scale()]
#' @examplesIf dpmode:::python_works()
#' pca <- dp_pca(~., dp_data("four_gaussians", n = 3000, seed = 1),
#'   bounds = list(x = c(-8, 8), y = c(-8, 8)), epsilon = 1, delta = 1e-6,
#'   n_components = 1, radius = 0.5
#' )
#' pca
#' coef(pca)
#' @export
dp_pca <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., n_components, radius = NULL,
                   centre = "private", scale = "box", whiten = TRUE, label = NULL, seed = NULL, subset, weights,
                   na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  if (missing(n_components)) abort("InvalidArgument", "n_components is missing; give the number of components to release")
  model <- mode_model(without_logs(formula), with_rows(data), bounds, list(
    n_components = n_components, radius = radius, centre = wire_per_column(centre, "centre"),
    scale = wire_per_column(scale, "scale"), whiten = whiten
  ))
  found <- call_python(
    "fit_principal_components", data = model$data, options = model$options,
    fit = drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  )
  new_result(found, call = call, formula = bare_formula(formula))
}

#' Clusters of many columns under differential privacy
#'
#' Private centre, private principal components and private clusters of the scores, under one epsilon. Scaling or components
#' that are computed from private rows before a clustering are released through it, and no guarantee covers them: here each
#' step is charged, and stands in the ledger.
#'
#' @inheritParams dp_pca
#' @param n_components Number of components, 1 to 8.
#' @param k Number of clusters; found when `NULL`.
#' @param radius As in [dp_pca()]; `"private"` by default.
#' @param whiten Whether the scores of each component are brought to unit variance; off by default, since it gives noisy
#'   components the weight of clear ones.
#' @param centres `"fit"` or `"modes"`, as in [dp_modal_clusters()].
#' @param reach Scores are clipped at so many standard deviations: of their component when whitened, else of the first (5);
#'   of rows clipped at the radius.
#' @param shares Shares of the squared noise budget of the steps, by name: by default `mean` .10, `radius` .05, `moments` .35,
#'   `clusters` .55, in proportion; a step in which nothing is released must be left out.
#' @return An object of class `dp_pca_clusters` and `dp_result`: a plain list, safe to save. [coef()] gives the centres in the
#'   original columns. `$components` is a [dp_pca()] and `$clusters` a [dp_modal_clusters()] of the scores, each with all its
#'   methods; `$shares` what each step took.
#' @seealso [dp_modal_clusters()] for few columns, and for columns that a public transformation has made.
#' @examplesIf dpmode:::python_works()
#' set.seed(1)
#' middle <- rbind(rep(0, 6), rep(c(4, 0), each = 3), rep(c(0, 4), each = 3))
#' rows <- as.data.frame(middle[sample(3, 3000, TRUE), ] + rnorm(18000))
#' bounds <- lapply(rows, function(column) c(-5, 9))
#' fit <- dp_pca_clusters(~., rows, bounds, epsilon = 2, delta = 1e-6, n_components = 2, k = 3)
#' fit
#' predict(fit, as.data.frame(middle))
#' @export
dp_pca_clusters <- function(formula, data, bounds = NULL, epsilon = NULL, delta = NULL, ..., n_components, k = NULL,
                            radius = "private", centre = "private", scale = "box", whiten = FALSE,
                            centres = c("fit", "modes"), reach = NULL, shares = NULL, label = NULL, seed = NULL, subset,
                            weights, na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  if (missing(n_components)) abort("InvalidArgument", "n_components is missing; give the number of components to cluster in")
  model <- mode_model(without_logs(formula), with_rows(data), bounds, list(
    n_components = n_components, n_clusters = k, radius = radius, centre = wire_per_column(centre, "centre"),
    scale = wire_per_column(scale, "scale"), whiten = whiten, centres = choice(centres, c("fit", "modes")),
    reach = reach, shares = wire_named(shares, "shares")
  ))
  found <- call_python(
    "fit_clustering_pipeline", data = model$data, options = model$options,
    fit = drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  )
  new_result(found, call = call, formula = bare_formula(formula))
}

with_rows <- function(data) {
  if (is_surface(data)) {
    abort("UnsupportedSource", "a released surface has no rows to scale; give a data frame or a private_data() object")
  }
  data
}

without_logs <- function(formula) {
  if (missing(formula)) abort("FormulaError", "formula is missing; give e.g. ~ . for all columns with bounds")
  if (length(read_terms(formula)$log)) {
    abort("FormulaError", "principal components are of plain number columns; log() is not offered here")
  }
  formula
}

# "private", one number for all, numbers by column, or a released scaler.
wire_per_column <- function(x, what) {
  if (inherits(x, "dp_scale")) return(list("scaler state" = x$state))
  if (is.null(x) || (length(x) == 1L && is.null(names(x)) && !is.list(x))) return(x)
  wire_named(x, what)
}

#' Estimates and tables of private preprocessing
#'
#' @param object,x A result of [dp_scale()], [dp_pca()] or [dp_pca_clusters()].
#' @param newdata New or public data. When it holds the private rows themselves, the answer is NOT covered by the guarantee.
#' @param type `"scores"`: scaled columns or scores of rows in the original columns. `"original"`: the way back, for points in
#'   scales or scores, such as centres. `"cluster"`: the number of the cluster.
#' @param conf.int Refused: no intervals are offered here, standard errors are in the table.
#' @param parm,level See [confint()].
#' @param row.names,optional Not used.
#' @param ... Not used.
#' @return `coef()`: a matrix: locations and scales by column (dates in seconds since 1970, durations in seconds); loadings,
#'   one row per component; centres in the original columns, one row per cluster. `predict()`: a data frame, or the number of
#'   the cluster of each row. `tidy()`, `glance()` and `as.data.frame()`: tables. The errors of the centres are those of the clusters alone; `angle` (degrees) says how far
#'   the noise turns a component, and `$components$location_errors` by how much the privacy
#'   noise moves the released centre.
#' @examplesIf dpmode:::python_works()
#' scaled <- dp_scale(~., dp_data("four_gaussians", n = 3000, seed = 1),
#'   bounds = list(x = c(-8, 8), y = c(-8, 8)), epsilon = 1, delta = 1e-6
#' )
#' tidy(scaled)
#' glance(scaled)
#' @name preprocessing
NULL

#' @rdname preprocessing
#' @export
coef.dp_scale <- function(object, ...) {
  e <- object$estimates
  matrix(c(e$location, e$scale), ncol = 2L, dimnames = list(e$term, c("location", "scale")))
}

#' @rdname preprocessing
#' @export
coef.dp_pca <- function(object, ...) {
  out <- object$loadings
  dimnames(out) <- list(object$estimates$name, terms_of(object))
  out
}

#' @rdname preprocessing
#' @export
coef.dp_pca_clusters <- function(object, ...) coef.dp_modal_clusters(object)

#' @rdname preprocessing
#' @export
predict.dp_scale <- function(object, newdata, type = c("scores", "original"), ...) {
  refuse_dots(...)
  map_rows(object, if (!missing(newdata)) newdata, match.arg(type))
}

#' @rdname preprocessing
#' @export
predict.dp_pca <- function(object, newdata, type = c("scores", "original"), ...) {
  refuse_dots(...)
  map_rows(object, if (!missing(newdata)) newdata, match.arg(type))
}

#' @rdname preprocessing
#' @export
predict.dp_pca_clusters <- function(object, newdata, type = c("cluster", "scores", "original"), ...) {
  refuse_dots(...)
  type <- match.arg(type)
  if (type != "cluster") return(map_rows(object, if (!missing(newdata)) newdata, type))
  if (missing(newdata)) refuse_rows("predict() without newdata")
  call_python("predict", state = object$state, new = wire_new(newdata), options = named_list())
}

map_rows <- function(object, newdata, type) {
  if (is.null(newdata)) refuse_rows("predict() without newdata")
  call_python("transform", state = object$state, new = wire_new(newdata), inverse = type == "original")
}

#' @rdname preprocessing
#' @export
tidy.dp_scale <- function(x, conf.int = FALSE, ...) {
  if (conf.int) refuse_intervals()
  e <- x$estimates
  one <- function(what) {
    data.frame(
      term = e$term, parameter = what, estimate = e[[what]], std.error = e[[paste0(what, "_total")]],
      std.error.privacy = e[[paste0(what, "_privacy")]], std.error.sampling = e[[paste0(what, "_sampling")]],
      floored = e$floored & what == "scale"
    )
  }
  both <- rbind(one("location"), one("scale"))
  as_tidy(`row.names<-`(both[order(match(both$term, e$term)), ], NULL))
}

#' @rdname preprocessing
#' @export
tidy.dp_pca <- function(x, conf.int = FALSE, ...) {
  if (conf.int) refuse_intervals()
  e <- x$estimates
  as_tidy(data.frame(
    component = e$component, variance = e$variance, std.error = e$std_error, std.error.privacy = e$se_privacy,
    std.error.sampling = e$se_sampling, proportion = e$proportion, cumulative = cumsum(e$proportion), angle = e$angle,
    clear = e$clear
  ))
}

#' @rdname preprocessing
#' @export
tidy.dp_pca_clusters <- function(x, conf.int = FALSE, ...) {
  if (conf.int) refuse_intervals(centre_intervals)
  e <- x$estimates
  as_tidy(data.frame(
    component = e$mode, term = e$term, estimate = e$estimate, std.error = e$std_error, proportion = e$share,
    std.error.proportion = e$share_se, statistic = e$significance, found.again = e$found_again
  ))
}

#' @rdname preprocessing
#' @export
glance.dp_scale <- function(x, ...) glance_with(x, data.frame(n.columns = length(terms_of(x))))

#' @rdname preprocessing
#' @export
glance.dp_pca <- function(x, ...) {
  glance_with(x, data.frame(
    n.columns = length(terms_of(x)), n.components = nrow(x$estimates), clear.components = sum(x$estimates$clear),
    proportion = sum(x$estimates$proportion), radius = x$radius
  ))
}

#' @rdname preprocessing
#' @export
glance.dp_pca_clusters <- function(x, ...) {
  glance_with(x, data.frame(
    n.clusters = x$n_clusters, n.columns = length(terms_of(x)), n.components = nrow(x$components$estimates),
    clear.components = sum(x$components$estimates$clear)
  ))
}

glance_with <- function(x, first) {
  p <- x$privacy
  as_tidy(cbind(first, data.frame(
    nobs = x$n_records, epsilon = p$epsilon, delta = p$delta, adjacency = p$adjacency, unit = p$unit,
    n.releases = nrow(p$releases), simulated = x$simulated
  )))
}

#' @rdname preprocessing
#' @export
augment.dp_pca_clusters <- function(x, newdata, ...) {
  if (missing(newdata)) refuse_rows("augment() without newdata")
  out <- as.data.frame(newdata)
  out$.component <- predict(x, newdata)
  as_tidy(out)
}

#' @rdname preprocessing
#' @export
as.data.frame.dp_scale <- function(x, row.names = NULL, optional = FALSE, ...) x$estimates

#' @rdname preprocessing
#' @export
as.data.frame.dp_pca <- function(x, row.names = NULL, optional = FALSE, ...) {
  data.frame(component = x$estimates$component, coef(x), row.names = NULL, check.names = FALSE)
}

#' @rdname preprocessing
#' @export
as.data.frame.dp_pca_clusters <- function(x, row.names = NULL, optional = FALSE, ...) x$original

#' @rdname preprocessing
#' @export
confint.dp_scale <- function(object, parm, level = 0.95, ...) refuse_intervals()

#' @rdname preprocessing
#' @export
confint.dp_pca <- function(object, parm, level = 0.95, ...) refuse_intervals()

#' @rdname preprocessing
#' @export
confint.dp_pca_clusters <- function(object, parm, level = 0.95, ...) {
  refuse_intervals(centre_intervals)
}

centre_intervals <- "; intervals of the centres in scores are in confint(fit$clusters)"

refuse_intervals <- function(more = "") {
  abort(
    "NotReleased", "there is no confint(): no interval with a known coverage is offered here. Standard errors are in tidy()",
    more, parents = "PydpmodeError"
  )
}

#' @rdname surface
#' @export
surface.dp_pca_clusters <- function(x, columns = NULL, bandwidth = NULL, ...) {
  refuse_dots(...)
  surface(x$clusters, columns = columns, bandwidth = bandwidth)
}

#' @rdname plot.dp_modes
#' @export
plot.dp_pca_clusters <- function(x, columns = NULL, level = 0.95, main = NULL, xlab = NULL, ylab = NULL, key = TRUE, ...) {
  if (is.null(main)) main <- picture_title(x)
  plot(x$clusters, columns = columns, level = level, main = main, xlab = xlab, ylab = ylab, key = key, ...)
  invisible(x)
}

#' @export
print.dp_scale <- function(x, digits = 4L, ...) print_lines(x, digits, ...)

#' @export
print.dp_pca <- function(x, digits = 4L, ...) print_lines(x, digits, ...)

#' @export
print.dp_pca_clusters <- function(x, digits = 4L, ...) print_lines(x, digits, ...)

print_lines <- function(x, digits, ...) {
  cat(format(x, digits = digits, ...), sep = "\n")
  invisible(x)
}

preprocessing_head <- function(x, what) {
  c(if (x$simulated) paste(what, "from simulated noise (NOT PRIVATE)") else paste("Private", what), call_lines(x), privacy_lines(x), "")
}

warnings_line <- function(x) if (length(x$warnings)) paste0(length(x$warnings), " warning(s) were given; see $warnings.")

shown <- function(table) utils::capture.output(print(table, quote = FALSE, right = TRUE))

#' @export
format.dp_scale <- function(x, digits = 4L, ...) {
  e <- x$estimates
  each <- function(value, error, of) {
    vapply(seq_along(e$term), function(j) value_error(value[[j]], error[[j]], digits, of(kind_of(x, j))), "")
  }
  # Scales of dates are spans of time.
  span <- function(kind) if (kind == "number") kind else "timedelta"
  table <- cbind(
    location = each(e$location, e$location_total, identity),
    scale = paste0(each(e$scale, e$scale_total, span), ifelse(e$floored, " ?", ""))
  )
  rownames(table) <- e$term
  c(
    preprocessing_head(x, "location and scale"), shown(table), "",
    "Released median, and distance of the quartiles over 1.349. In brackets the standard error: privacy",
    "noise and sampling, at the density of a normal column: in a column of several modes a median or",
    "quartile between two of them can be off by many times that.",
    if (any(e$floored)) "? No spread was seen: a hundredth of the width of the bounds.", warnings_line(x)
  )
}

#' @export
format.dp_pca <- function(x, digits = 4L, ...) {
  e <- x$estimates
  table <- cbind(
    variance = value_error(e$variance, e$std_error, digits),
    share = paste0(format(round(100 * e$proportion, 1L), nsmall = 1L), "%"), `angle error` = format(round(e$angle))
  )
  rownames(table) <- paste0(e$name, ifelse(e$clear, "", " ?"))
  c(
    preprocessing_head(x, paste("principal components of", length(terms_of(x)), "columns")), shown(table), "",
    paste0("Of rows clipped to distance ", format(x$radius, digits = digits), " from the centre, in scales. In brackets the standard error;"),
    "angle: by how many degrees the noise turns a component. Loadings are in coef().",
    if (!all(e$clear)) "? Not above what noise alone gives.", warnings_line(x)
  )
}

#' @export
format.dp_pca_clusters <- function(x, digits = 4L, ...) {
  e <- x$components$estimates
  c(
    preprocessing_head(x, paste("clusters of", length(terms_of(x)), "columns in", nrow(e), "components")),
    paste0("Angle by which the noise turns the components: ", paste(format(round(e$angle), trim = TRUE), collapse = ", "), " degrees"), "",
    if (x$n_clusters == 0L) "No cluster can be told from noise." else c(
      "Centres in scores:", shown(cluster_table(x$clusters, digits)), "",
      "In brackets the standard error of the clusters. Centres in the original columns are in coef().",
      doubt_line(x$clusters)
    ),
    warnings_line(x)
  )
}
