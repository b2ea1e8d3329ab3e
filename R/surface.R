#' The released density surface
#'
#' The one private object: everything else is read from it. It can be evaluated, plotted, integrated, sampled and read
#' at another bandwidth without limit, at no further cost.
#'
#' @param x A result of [dp_modes()], or a surface.
#' @param columns Names of the coordinates to keep (a marginal), such as `c("age", "log(wage)")`; all when `NULL`.
#' @param bandwidth Read the same release at another bandwidth (numbers in the coordinates' units).
#' @param group Which level of the grouping column (`by`) of a regression: each has a surface of its own.
#' @param ... Not used.
#' @return A list of class `dp_surface`. `predict()` gives density, noise and slope at new points,
#'   `simulate()` synthetic rows, [share_between()] the share of the density in a box, `as.data.frame()` a grid.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~ age + log(wage), dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)), resolution = c(age = 1),
#'   epsilon = 1, delta = 1e-6
#' )
#' s <- surface(fit, columns = "age")
#' s
#' predict(s, data.frame(age = c(20, 40, 60)))
#' share_between(s, list(age = c(30, 40)))
#' head(simulate(s, nsim = 5, seed = 1))
#' @export
surface <- function(x, ...) UseMethod("surface")

#' @rdname surface
#' @export
surface.dp_result <- function(x, columns = NULL, bandwidth = NULL, group = NULL, ...) {
  refuse_dots(...)
  if (!isTRUE(x$has_surface)) {
    abort(
      "NoSurface", "this result has no surface: it was released without one (mechanism = \"grams\", a scaler, components), or saved ",
      "without it",
      parents = "PydpmodeError"
    )
  }
  read_surface(x$state, columns, bandwidth, group_of(x, group))
}

#' @rdname surface
#' @export
surface.dp_surface <- function(x, columns = NULL, bandwidth = NULL, ...) {
  refuse_dots(...)
  if (is.null(columns) && is.null(bandwidth)) x else read_surface(x$state, columns, bandwidth)
}

# The level that `group` names, as Python has it; NULL without a grouping column.
group_of <- function(x, group) {
  if (is.null(x$by)) {
    if (!is.null(group)) abort("InvalidArgument", "group is for a regression with a grouping column (by)")
    return(NULL)
  }
  k <- if (length(group) == 1L) match(as.character(group), level_names(x)) else NA
  if (is.na(k)) {
    abort(
      "NoSurface", "each level of ", x$by, " has a surface of its own: give group, one of ",
      paste(level_names(x), collapse = ", "), parents = "PydpmodeError"
    )
  }
  x$levels[[k]]
}

level_names <- function(x) as.character(unlist(x$levels))

read_surface <- function(state, columns, bandwidth, group = NULL) {
  if (!is.null(names(bandwidth))) bandwidth <- split_names(bandwidth)
  new_surface(call_python(
    "surface_of", state = state, columns = as_column_list(columns), bandwidth = bandwidth, group = group
  ))
}

new_surface <- function(found) structure(found, class = "dp_surface")

#' @export
print.dp_surface <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' @export
format.dp_surface <- function(x, digits = 4L, ...) {
  terms <- terms_of(x)
  f <- function(v) format(v, digits = digits, trim = TRUE)
  c(
    paste0("Released density surface of (", paste(terms, collapse = ", "), ")"),
    vapply(seq_along(terms), function(j) {
      kind <- kind_of(x, j)
      ends <- if (kind == "number") c(f(x$lower[[j]]), f(x$upper[[j]])) else bound_text(c(x$lower[[j]], x$upper[[j]]), kind)
      paste0("  ", terms[[j]], ": from ", ends[[1L]], " to ", ends[[2L]], ", bandwidth ", width_text(x$bandwidth[[j]], kind, digits))
    }, ""),
    paste0("  Noise sd of the density: ", f(x$noise_sd), "; negative mass: ", f(x$negative_mass)),
    paste0("  Records: about ", format(round(x$total), big.mark = ","), " (sd ", f(x$total_sd), "), ", x$n_frequencies, " frequencies"),
    strwrap(x$privacy$statement, width = 76L, indent = 2L, exdent = 2L)
  )
}

#' Read from a surface
#'
#' @param object,x A [surface()].
#' @param newdata A data frame with the surface's columns, in the original units.
#' @param type `"density"`; or `"all"` for gradient and Hessian as well.
#' @param nsim Number of synthetic rows.
#' @param seed Seed of the draw (it does not touch the privacy noise); fresh when `NULL`.
#' @param scale `"original"` for the users' columns, `"coordinate"` for, say, `log(wage)`.
#' @param points Grid points per coordinate.
#' @param row.names,optional Not used.
#' @param ... Not used.
#' @return `predict()`: a data frame with `density` and its `noise.sd`. `simulate()`: a data frame of `nsim` synthetic
#'   rows. `as.data.frame()`: a grid with its density (one or two coordinates).
#' @export
predict.dp_surface <- function(object, newdata, type = c("density", "all"), ...) {
  if (missing(newdata)) refuse_rows("predict() without newdata")
  type <- match.arg(type)
  found <- call_python("surface_at", state = object$state, new = wire_new(newdata))
  out <- data.frame(density = found$density, noise.sd = object$noise_sd)
  if (type == "density") return(out)
  d <- length(object$lower)
  terms <- terms_of(object)
  gradient <- matrix(found$gradient, ncol = d, dimnames = list(NULL, paste0("d.", terms)))
  names <- outer(terms, terms, function(a, b) paste0("d2.", a, ".", b))
  hessian <- matrix(found$hessian, ncol = d * d, dimnames = list(NULL, as.vector(t(names))))
  data.frame(out, gradient, hessian, check.names = FALSE)
}

#' @rdname predict.dp_surface
#' @importFrom stats simulate
#' @export
simulate.dp_surface <- function(object, nsim = 1, seed = NULL, scale = c("original", "coordinate"), ...) {
  call_python(
    "surface_sample", state = object$state, n = nsim, seed = seed, original = match.arg(scale) == "original"
  )
}

#' @rdname predict.dp_surface
#' @export
as.data.frame.dp_surface <- function(x, row.names = NULL, optional = FALSE, ..., points = 61) {
  found <- surface_grid(x, points)
  out <- do.call(expand.grid, c(stats::setNames(found$axes, terms_of(x)), list(KEEP.OUT.ATTRS = FALSE)))
  out[] <- lapply(seq_along(out), function(j) in_own_type(out[[j]], kind_of(x, j)))
  out$density <- as.vector(found$density)
  out
}

#' Share of the density in a box
#'
#' @param x A [surface()], or a result with one.
#' @param range A named list of pairs in the original units, such as `list(age = c(30, 40))`; columns that are not named
#'   are taken whole.
#' @return One number; by noise it may fall a little outside 0 to 1.
#' @examplesIf dpmode:::python_works()
#' fit <- dp_modes(~age, dp_data("wages"),
#'   bounds = list(age = c(15, 90)), resolution = c(age = 1), epsilon = 1, delta = 1e-6
#' )
#' share_between(fit, list(age = c(30, 40)))
#' @export
share_between <- function(x, range) {
  x <- surface(x)
  range <- wire_bounds(range)
  if (any(lengths(range) != 2L)) abort("InvalidBounds", "each entry of range must be a pair (low, high)")
  lower <- lapply(range, function(pair) pair[1L])
  upper <- lapply(range, function(pair) pair[2L])
  call_python("surface_share", state = x$state, lower = named_list(lower), upper = named_list(upper))
}

surface_grid <- function(x, points, columns = NULL) {
  call_python("surface_grid", state = x$state, points = points, columns = as_column_list(columns))
}
