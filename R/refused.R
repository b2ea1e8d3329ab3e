#' What cannot exist here
#'
#' Residuals and fitted values are one number per private row, and a likelihood is a sum over the private rows: none of
#' them was released, and a result holds no rows.
#'
#' @param object A result of this package.
#' @param ... Not used.
#' @return None: an error of class `dpmode_NotReleased` that says why.
#' @name refused
NULL

#' @rdname refused
#' @export
residuals.dp_result <- function(object, ...) refuse_rows("residuals()")

#' @rdname refused
#' @export
fitted.dp_result <- function(object, ...) refuse_rows("fitted()")

#' @rdname refused
#' @export
logLik.dp_result <- function(object, ...) {
  abort(
    "NotReleased", "there is no logLik(): a likelihood is a sum over the private rows and was not released. Compare fits ",
    "by glance(), or by their standard errors", parents = "PydpmodeError"
  )
}

#' @rdname refused
#' @export
model.frame.dp_result <- function(formula, ...) refuse_rows("model.frame()")

#' @rdname refused
#' @param formula A result of this package.
#' @export
update.dp_result <- function(object, ...) {
  abort(
    "NotReleased", "there is no update(): another fit is another release, and costs privacy again; call the model anew. ",
    "To read the same release differently, give the fit (or its surface) as data: that costs nothing",
    parents = "PydpmodeError"
  )
}

refuse_rows <- function(what) {
  abort(
    "NotReleased", "there is no ", what, ": it would be one value per private row, and a result holds no rows. ",
    "What was released is in coef(), tidy() and surface()", parents = "PydpmodeError"
  )
}
