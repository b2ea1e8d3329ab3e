# Results are plain lists with a class: what Python described, plus call and formula. No row, no pointer.

r_classes <- c(
  density_modes = "dp_modes",
  modal_regression = "dp_modal_regression",
  modal_clustering = "dp_modal_clusters",
  modal_clusters = "dp_modal_clusters",
  scaler = "dp_scale",
  principal_components = "dp_pca",
  clustering_pipeline = "dp_pca_clusters"
)

new_result <- function(found, call = NULL, formula = NULL) {
  if (identical(found$kind, "surface")) return(new_surface(found))
  own <- unname(r_classes[found$kind])
  if (identical(own, "dp_pca_clusters")) {
    found$components <- new_result(found$components)
    found$clusters <- new_result(found$clusters)
  }
  structure(
    c(found, list(call = call, formula = formula, dpmode = own_version())),
    class = c(if (!is.na(own)) own, "dp_result")
  )
}

# The same result, its tables at another level. Costs nothing.
at_level <- function(object, level) {
  if (identical(as.double(level), object$level)) return(object)
  found <- call_python("describe", state = object$state, level = level)
  new_result(found, object$call, object$formula)
}

terms_of <- function(x) as.character(x$coordinates$name)

#' @export
print.dp_modes <- function(x, digits = 4L, ...) {
  cat(format(x, digits = digits, ...), sep = "\n")
  invisible(x)
}

#' @export
format.dp_modes <- function(x, digits = 4L, ...) {
  terms <- terms_of(x)
  head <- c(
    paste0(
      if (x$simulated) "Modes, simulated noise (NOT PRIVATE)," else "Private modes", " of the density of (",
      paste(terms, collapse = ", "), ")"
    ),
    call_lines(x), privacy_lines(x), ""
  )
  if (x$n_modes == 0L) return(c(head, "No mode can be told from noise."))
  table <- mode_table(x, digits)
  c(head, utils::capture.output(print(table, quote = FALSE, right = TRUE)), "", mode_notes(x))
}

call_lines <- function(x) if (is.null(x$call)) NULL else c("", "Call:", deparse(x$call, width.cutoff = 70L))

privacy_lines <- function(x) {
  p <- x$privacy
  if (is.null(p)) return(c("", "NOT released under privacy."))
  if (isTRUE(p$simulated)) return(c("", strwrap(p$statement, width = 79L)))
  c("", strwrap(paste0("The release is ", p$statement), width = 79L))
}

mode_table <- function(x, digits) {
  e <- x$estimates
  terms <- terms_of(x)
  columns <- list()
  for (j in seq_along(terms)) {
    own <- e[e$term == terms[[j]], ]
    columns[[terms[[j]]]] <- value_error(own$estimate, own$std_error, digits, kind_of(x, j))
    if (is_changed(x, j)) {
      original <- x$original[[as.character(x$coordinates$column[[j]])]]
      columns[[paste0("-> ", x$coordinates$column[[j]])]] <- original_text(original, digits)
    }
  }
  first <- e[e$term == terms[[1L]], ]
  # DP-GRAMS releases no density between the modes, hence no shares.
  if (!all(is.na(first$share))) columns$share <- format(round(first$share, 3L), nsmall = 3L)
  columns$`height z` <- format(round(first$height_z, 1L), nsmall = 1L)
  table <- do.call(cbind, columns)
  marks <- ifelse(first$reliable, "", " ?")
  dimnames(table) <- list(paste0(first$mode, marks), names(columns))
  table
}

# Whether a coordinate differs from its column: a logarithm. Scores are their own columns.
is_changed <- function(x, j) x$coordinates$column[[j]] != x$coordinates$name[[j]]

original_text <- function(values, digits) {
  vapply(values, function(v) format(signif(v, digits), scientific = FALSE, trim = TRUE), "")
}

mode_notes <- function(x) {
  notes <- "In brackets the standard error: privacy noise, sampling and smoothing bias."
  if (any(!x$estimates$reliable)) notes <- c(notes, "? Interval that cannot be relied on: summary() says why.")
  if (any(!x$estimates$significant)) notes <- c(notes, "Some of these modes cannot be told from noise; see tidy().")
  if (length(x$warnings)) notes <- c(notes, paste0(length(x$warnings), " warning(s) were given; see $warnings."))
  notes
}

#' The full summary of a result
#'
#' The same report as in Python: modes, standard errors split by source, intervals, privacy and diagnostics, with notes
#' that say what they mean.
#'
#' @param object A result of [dp_modes()] (or another model of this package).
#' @param level Coverage of the intervals.
#' @param format `"text"`, `"html"`, `"latex"` or `"csv"`.
#' @param ... Not used.
#' @return An object of class `summary.dp_result`: the report, which prints as it is; `as.character()` gives the text.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' summary(fit, level = 0.9)
#' @export
summary.dp_result <- function(object, level = 0.95, format = c("text", "html", "latex", "csv"), ...) {
  format <- match.arg(format)
  text <- object$summary
  if (!identical(as.double(level), object$level) || format != "text") {
    text <- call_python("render", state = object$state, level = level, format = format)
  }
  structure(list(text = text, level = level, format = format, call = object$call), class = "summary.dp_result")
}

#' @export
print.summary.dp_result <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @export
format.summary.dp_result <- function(x, ...) strsplit(x$text, "\n", fixed = TRUE)[[1L]]

#' @export
as.character.summary.dp_result <- function(x, ...) x$text

#' @export
print.dp_result <- function(x, ...) {
  cat(x$summary, "\n", sep = "")
  invisible(x)
}

#' @export
format.dp_result <- function(x, ...) strsplit(x$summary, "\n", fixed = TRUE)[[1L]]

#' Estimates and intervals of private modes
#'
#' @param object,x A result of [dp_modes()].
#' @param parm Names of coordinates to keep, such as `"age"`, or numbers of modes; all when omitted.
#' @param level Coverage of each interval on its own.
#' @param row.names,optional Not used.
#' @param ... Not used.
#' @return `coef()`: a matrix, one row per mode (highest first), one column per coordinate, in the coordinates' units; with
#'   dates or durations a data frame, in which these columns are [POSIXct] and [difftime]. `confint()`: a matrix with one row
#'   per mode and coordinate, named such as `"1:age"`. `vcov()`: the covariance of one mode's location. (There, and in
#'   `tidy()`, dates are seconds since 1970 and durations seconds.) `as.data.frame()`: the modes on the
#'   original scale, dates as such, with 95% intervals. `nobs()`: the
#'   number of records that were used, as released.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' coef(fit)
#' confint(fit, level = 0.9)
#' as.data.frame(fit)
#' @export
coef.dp_modes <- function(object, ...) in_own_units(object, mode_centres(object, "mode"))

# Locations, one row each, in the coordinates' units; of dates and durations as seconds.
mode_centres <- function(x, what = "mode") {
  terms <- terms_of(x)
  at <- matrix(x$estimates$estimate, ncol = length(terms), byrow = TRUE)
  dimnames(at) <- list(as.character(seq_len(nrow(at))), terms)
  names(dimnames(at)) <- c(what, "")
  at
}

# The same matrix; with dates or durations a data frame, because a matrix would hold their seconds.
in_own_units <- function(x, at) {
  kinds <- vapply(seq_len(ncol(at)), function(j) kind_of(x, j), "")
  if (all(kinds == "number")) return(at)
  columns <- lapply(seq_len(ncol(at)), function(j) in_own_type(unname(at[, j]), kinds[[j]]))
  out <- structure(columns, class = "data.frame", row.names = .set_row_names(nrow(at)))
  names(out) <- colnames(at)
  if (nrow(at)) rownames(out) <- rownames(at)
  out
}

#' @rdname coef.dp_modes
#' @export
confint.dp_modes <- function(object, parm, level = 0.95, ...) {
  e <- at_level(object, level)$estimates
  if (!missing(parm)) e <- keep_parm(e, parm)
  out <- cbind(e$lower, e$upper)
  dimnames(out) <- list(paste(e$mode, e$term, sep = ":"), percent_names(level))
  out
}

percent_names <- function(level) {
  paste(format(100 * c((1 - level) / 2, 1 - (1 - level) / 2), trim = TRUE, digits = 3L), "%")
}

keep_parm <- function(e, parm) {
  unknown <- if (is.numeric(parm)) setdiff(parm, e$mode) else setdiff(parm, c(e$term, paste(e$mode, e$term, sep = ":")))
  if (length(unknown)) {
    abort("InvalidArgument", "parm names ", paste(unknown, collapse = ", "), "; there are ",
          paste(unique(e$term), collapse = ", "), " and modes 1 to ", max(e$mode, 0L))
  }
  if (is.numeric(parm)) e[e$mode %in% parm, ] else e[e$term %in% parm | paste(e$mode, e$term, sep = ":") %in% parm, ]
}

#' @rdname coef.dp_modes
#' @param mode Number of the mode.
#' @param source Which part of the error: `"total"`, `"privacy"`, `"sampling"` or `"bias"`.
#' @export
vcov.dp_modes <- function(object, mode = 1, source = c("total", "privacy", "sampling", "bias"), ...) {
  out <- call_python("covariance", state = object$state, mode = mode, source = match.arg(source))
  dimnames(out) <- list(terms_of(object), terms_of(object))
  out
}

#' @rdname coef.dp_modes
#' @export
as.data.frame.dp_modes <- function(x, row.names = NULL, optional = FALSE, ..., level = 0.95) {
  at_level(x, level)$original
}

#' @rdname coef.dp_modes
#' @export
nobs.dp_result <- function(object, ...) object$n_records

#' @export
formula.dp_result <- function(x, ...) x$formula

#' Which mode new points belong to
#'
#' @param object A result of [dp_modes()].
#' @param newdata A data frame with the original columns (or with coordinates such as `log(wage)`). When it holds the
#'   private rows themselves, the answer describes those rows and is NOT covered by the guarantee.
#' @param type `"nearest"`: the nearest mode, distances in bandwidths. `"basin"`: the mode that ascent on the surface
#'   leads to.
#' @param ... Not used.
#' @return Whole numbers, one per row: the number of the mode, `NA` where a value is missing.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' predict(fit, data.frame(age = c(20, 50, NA)))
#' @export
predict.dp_modes <- function(object, newdata, type = c("nearest", "basin"), ...) {
  if (missing(newdata)) refuse_rows("predict() without newdata")
  refuse_dots(...)
  call_python(
    "predict", state = object$state, new = wire_new(newdata), options = list(method = match.arg(type))
  )
}

wire_new <- function(newdata) {
  if (is.matrix(newdata) && !is.null(colnames(newdata))) newdata <- as.data.frame(newdata)
  if (!is.data.frame(newdata)) {
    abort("InvalidArgument", "newdata must be a data frame with the columns of the fit, got ", class(newdata)[[1L]])
  }
  usable <- vapply(newdata, function(x) is.null(dim(x)) && (is.numeric(x) || is.logical(x) || inherits(x, c("Date", "POSIXt"))), NA)
  wire_frame(newdata, names(newdata)[usable])
}

#' The guarantee of a release
#'
#' @param x A result or a surface of this package.
#' @param ... Not used.
#' @return A list of class `dp_privacy`: `epsilon`, `delta`, `adjacency`, `unit`, `mechanism`, `sensitivity`,
#'   `noise_scale`, the public `bounds`, `simulated`, and the `statement` in words.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' privacy(fit)
#' @export
privacy <- function(x, ...) UseMethod("privacy")

#' @export
privacy.dp_result <- function(x, ...) new_privacy(x$privacy, column_kinds(x))

#' @export
privacy.dp_surface <- function(x, ...) new_privacy(x$privacy, column_kinds(x))

new_privacy <- function(x, kinds) if (is.null(x)) NULL else structure(x, class = "dp_privacy", kinds = kinds)

#' @export
print.dp_privacy <- function(x, ...) {
  cat(strwrap(x$statement, width = 79L), sep = "\n")
  if (NROW(x$releases) > 1L) {
    print(x$releases[c("release", "mechanism", "epsilon", "delta", "noise_scale")], digits = 4L, row.names = FALSE)
  } else {
    cat("Mechanism: ", x$mechanism, "; noise scale ", format(x$noise_scale, digits = 4L), " (sensitivity ",
        format(x$sensitivity, digits = 4L), ")\n", sep = "")
  }
  for (name in names(x$bounds)) {
    ends <- bound_text(x$bounds[[name]], kind_in(attr(x, "kinds"), name))
    cat("Bounds of ", name, ": ", paste(ends, collapse = " to "), " (values outside: ",
        x$outside, ")\n", sep = "")
  }
  invisible(x)
}

#' Read and write results and surfaces
#'
#' A result can be saved with [saveRDS()] like any R object. These functions use the JSON files of the Python package
#' (`res.save()`, `pydpmode modes --json`), so that both sides can read them.
#'
#' @param x A result or a surface.
#' @param path The file; compressed when its name ends in `.gz`.
#' @return `dp_read()`: the result or surface. `dp_write()`: the path, invisibly.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' file <- dp_write(fit, tempfile(fileext = ".json.gz"))
#' coef(dp_read(file))
#' @export
dp_read <- function(path) new_result(call_python("read", path = path.expand(path)))

#' @rdname dp_read
#' @export
dp_write <- function(x, path) {
  if (!inherits(x, c("dp_result", "dp_surface"))) abort("InvalidArgument", "x must be a result or a surface of this package")
  call_python("write", state = x$state, path = path.expand(path))
  invisible(path)
}
