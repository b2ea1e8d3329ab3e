#' Modal clusters under differential privacy
#'
#' Clusters of the records, from one release of their density: centres with standard errors, shares with standard
#' errors, and how far each cluster can be trusted. Which record belongs where is not released.
#'
#' @inheritParams dp_modes
#' @param k Number of clusters, at most 50 for `"fit"`; found when `NULL`: clusters are added while the release shows more than noise.
#' @param centres `"fit"`: Gaussian clusters of one common shape (four or more columns: of own shapes and one volume),
#'   fitted to the released vector itself, which undoes the smoothing. `"modes"`: peaks of the density, without an assumption on shape.
#' @param bandwidth Of the release; by a public rule when `NULL`. Otherwise as in [dp_modes()].
#' @param false_split_rate With an unknown number: chance that pure noise adds a cluster (0.1).
#' @param public_transform States that the columns were made from the records, row by row, by a fixed function that was
#'   NOT learned from these rows: say which. The statement is kept with the result.
#' @return An object of class `dp_modal_clusters` and `dp_result`: a plain list, safe to save.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modal_clusters(~., dp_data("four_gaussians", n = 3000, seed = 1), k = 4,
#'   bounds = list(x = c(-8, 8), y = c(-8, 8)), epsilon = 1, delta = 1e-5
#' )
#' fit
#' predict(fit, data.frame(x = c(3, -3), y = c(3, -3)))
#' plot(fit)
#' @export
dp_modal_clusters <- function(formula, data, k = NULL, bounds = NULL, epsilon = NULL, delta = NULL, ...,
                              centres = c("fit", "modes"), bandwidth = NULL, false_split_rate = NULL,
                              n_features = NULL, public_transform = NULL, label = NULL, seed = NULL, subset, weights,
                              na.action) {
  call <- bare_call(match.call())
  refuse_dots(...)
  refuse_row_choice(!missing(subset), !missing(weights), if (!missing(na.action)) na.action)
  model <- mode_model(formula, data, bounds, list(
    n_clusters = k, centres = choice(centres, c("fit", "modes")), bandwidth = wire_value(bandwidth),
    false_split_rate = false_split_rate, n_features = n_features, public_transform = public_transform
  ))
  fit <- drop_null(list(epsilon = epsilon, delta = delta, label = label, seed = seed))
  found <- call_python("fit_modal_clustering", data = model$data, options = model$options, fit = fit)
  new_result(found, call = call, formula = bare_formula(formula))
}

#' @rdname preview_modes
#' @param k,centres,false_split_rate,public_transform As in [dp_modal_clusters()].
#' @export
preview_clusters <- function(formula, data, k = NULL, bounds = NULL, epsilon = NULL, delta = NULL, ..., n = NULL,
                             spread = NULL, centres = c("fit", "modes"), bandwidth = NULL, false_split_rate = NULL,
                             n_features = NULL, public_transform = NULL) {
  refuse_dots(...)
  model <- mode_model(formula, data, bounds, list(
    n_clusters = k, centres = choice(centres, c("fit", "modes")), bandwidth = wire_value(bandwidth),
    false_split_rate = false_split_rate, n_features = n_features, public_transform = public_transform
  ))
  preview <- drop_null(list(epsilon = epsilon, delta = delta, n = n, spread = wire_named(spread, "spread")))
  structure(
    call_python("preview_modal_clustering", data = model$data, options = model$options, preview = preview),
    class = "dp_preview"
  )
}

#' Estimates and tables of private clusters
#'
#' @param object,x A result of [dp_modal_clusters()].
#' @param parm Names of coordinates to keep, or numbers of clusters; all when omitted.
#' @param level,conf.level Coverage of each interval on its own.
#' @param conf.int Whether to include the intervals.
#' @param newdata New data. When it holds the private rows themselves, the answer is NOT covered by the guarantee.
#' @param type `"nearest"`: the nearest centre, distances in bandwidths; `"basin"`: the centre in whose basin of the
#'   surface the point lies.
#' @param cluster,source Which cluster, and which part of its error: `"total"`, `"privacy"` or `"sampling"`.
#' @param row.names,optional Not used.
#' @param ... Not used.
#' @return `coef()`: the centres, a matrix with one row per cluster, the largest share first; with dates or durations a data
#'   frame, in which these columns are [POSIXct] and [difftime]. `confint()`: a matrix with one row per cluster and
#'   coordinate. `vcov()`: the covariance of one centre. (There, and in `tidy()`, dates are seconds since 1970 and durations
#'   seconds.) `predict()`: the number of the cluster that
#'   each row of `newdata` belongs to. `as.data.frame()`: the centres on the original scale. `tidy()`: with broom's names,
#'   and `std.error.proportion`, `found.again` (share of repeated draws of the privacy noise in which the cluster is found
#'   again), `statistic` (evidence in standard deviations of the noise) and `reliable` (whether both are high enough; `?`
#'   marks the others in print). `glance()`: one row. `augment()`: `newdata`
#'   with `.component`.
#' @export
coef.dp_modal_clusters <- function(object, ...) in_own_units(object, mode_centres(object, "cluster"))

#' @rdname coef.dp_modal_clusters
#' @export
confint.dp_modal_clusters <- function(object, parm, level = 0.95, ...) {
  if (missing(parm)) confint.dp_modes(object, level = level) else confint.dp_modes(object, parm, level = level)
}

#' @rdname coef.dp_modal_clusters
#' @export
vcov.dp_modal_clusters <- function(object, cluster = 1, source = c("total", "privacy", "sampling"), ...) {
  vcov.dp_modes(object, cluster, match.arg(source))
}

#' @rdname coef.dp_modal_clusters
#' @export
as.data.frame.dp_modal_clusters <- function(x, row.names = NULL, optional = FALSE, ...) x$original

#' @rdname coef.dp_modal_clusters
#' @export
predict.dp_modal_clusters <- function(object, newdata, type = c("nearest", "basin"), ...) {
  if (missing(newdata)) refuse_rows("predict() without newdata")
  refuse_dots(...)
  call_python("predict", state = object$state, new = wire_new(newdata), options = list(method = match.arg(type)))
}

#' @rdname coef.dp_modal_clusters
#' @export
tidy.dp_modal_clusters <- function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  e <- if (conf.int) at_level(x, conf.level)$estimates else x$estimates
  table <- data.frame(
    component = e$mode, term = e$term, estimate = e$estimate, std.error = e$std_error,
    std.error.privacy = e$se_privacy, std.error.sampling = e$se_sampling
  )
  if (conf.int) table <- cbind(table, conf.low = e$lower, conf.high = e$upper)
  as_tidy(cbind(
    table, proportion = e$share, std.error.proportion = e$share_se, statistic = e$significance, found.again = e$found_again,
    reliable = e$reliable
  ))
}

#' @rdname coef.dp_modal_clusters
#' @export
glance.dp_modal_clusters <- function(x, ...) {
  p <- x$privacy
  of <- function(name) if (is.null(p) || is.null(p[[name]])) NA else p[[name]]
  as_tidy(data.frame(
    n.clusters = x$n_clusters, centres = x$centres_kind, least.stability = x$diagnostics$least_stability,
    nobs = x$n_records, epsilon = of("epsilon"), delta = of("delta"), adjacency = of("adjacency"), unit = of("unit"),
    mechanism = of("mechanism"), noise.scale = of("noise_scale"), density.noise.sd = x$noise_sd, simulated = x$simulated
  ))
}

#' @rdname coef.dp_modal_clusters
#' @export
augment.dp_modal_clusters <- function(x, newdata, type = c("nearest", "basin"), ...) {
  if (missing(newdata)) refuse_rows("augment() without newdata")
  out <- as.data.frame(newdata)
  out$.component <- predict(x, newdata, type = match.arg(type))
  as_tidy(out)
}

#' @export
print.dp_modal_clusters <- function(x, digits = 4L, ...) {
  cat(format(x, digits = digits, ...), sep = "\n")
  invisible(x)
}

#' @export
format.dp_modal_clusters <- function(x, digits = 4L, ...) {
  terms <- terms_of(x)
  head <- c(
    paste0(
      if (x$simulated) "Clusters, simulated noise (NOT PRIVATE)," else "Private clusters", " in (",
      paste(terms, collapse = ", "), "), centres by ", if (x$centres_kind == "fit") "a fitted mixture" else "modes"
    ),
    call_lines(x), privacy_lines(x), ""
  )
  if (x$n_clusters == 0L) return(c(head, "No cluster can be told from noise."))
  c(
    head, utils::capture.output(print(cluster_table(x, digits), quote = FALSE, right = TRUE)), "",
    "In brackets the standard error: privacy noise and sampling.", doubt_line(x),
    if (length(x$warnings)) paste0(length(x$warnings), " warning(s) were given; see $warnings.")
  )
}

# What the mark beside a cluster says, where there is one.
doubt_line <- function(x) if (!all(x$estimates$reliable)) "? Cluster that cannot be relied on: summary() says why."

cluster_table <- function(x, digits) {
  e <- x$estimates
  columns <- list()
  for (j in seq_along(terms_of(x))) {
    name <- terms_of(x)[[j]]
    own <- e[e$term == name, ]
    columns[[name]] <- value_error(own$estimate, own$std_error, digits, kind_of(x, j))
    if (is_changed(x, j)) {
      column <- as.character(x$coordinates$column[[j]])
      columns[[paste0("-> ", column)]] <- original_text(x$original[[column]], digits)
    }
  }
  first <- e[e$term == terms_of(x)[[1L]], ]
  columns$share <- value_error(round(first$share, 4L), first$share_se, digits)
  if (!all(is.na(first$found_again))) columns$`found again` <- format(round(first$found_again, 2L), nsmall = 2L)
  table <- do.call(cbind, columns)
  dimnames(table) <- list(paste0(first$mode, ifelse(first$reliable, "", " ?")), names(columns))
  table
}

#' @rdname plot.dp_modes
#' @export
plot.dp_modal_clusters <- function(x, columns = NULL, level = 0.95, main = NULL, xlab = NULL, ylab = NULL, key = TRUE, ...) {
  draw_result(x, columns, level, main, xlab, ylab, key, ...)
}
