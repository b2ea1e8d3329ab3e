# Formulas name columns; nothing is computed from the rows in R.

# ~ age + log(wage) -> list(columns = c("age", "wage"), log = "wage"); ~ . -> columns NULL.
read_terms <- function(formula, side = "right") {
  if (!inherits(formula, "formula")) {
    abort("FormulaError", "formula must be a formula such as ~ age + log(wage), got ", class(formula)[[1L]])
  }
  if (length(formula) != 2L) {
    abort("FormulaError", "only columns on the right of the ~ are allowed here, such as ~ age + log(wage)")
  }
  parts <- split_sum(formula[[2L]])
  if (length(parts) == 1L && identical(parts[[1L]], quote(.))) return(list(columns = NULL, log = character()))
  found <- lapply(parts, read_term)
  columns <- vapply(found, `[[`, "", "column")
  list(columns = columns, log = columns[vapply(found, `[[`, NA, "log")])
}

split_sum <- function(x) {
  if (is.call(x) && identical(x[[1L]], quote(`(`))) return(split_sum(x[[2L]]))
  if (is.call(x) && identical(x[[1L]], quote(`+`))) {
    if (length(x) == 2L) return(split_sum(x[[2L]]))
    return(c(split_sum(x[[2L]]), split_sum(x[[3L]])))
  }
  list(x)
}

read_term <- function(x) {
  if (is.symbol(x) && !identical(x, quote(.))) return(list(column = as.character(x), log = FALSE))
  if (is.call(x) && length(x) == 2L && identical(x[[1L]], quote(log)) && is.symbol(x[[2L]])) {
    return(list(column = as.character(x[[2L]]), log = TRUE))
  }
  abort(
    "FormulaError", "a term must be a column or log(column), got ", paste(deparse(x), collapse = " "),
    "; other transformations are not offered: their bounds would not be known"
  )
}

# The formula as it is kept in a result: without the environment in which the rows may lie.
bare_formula <- function(formula) {
  if (!inherits(formula, "formula")) return(NULL)
  bare <- formula
  attributes(bare) <- NULL
  structure(bare, class = "formula", .Environment = globalenv())
}

# The call as it is kept in a result. do.call() puts whole tables into calls: only names and short public
# values survive.
bare_call <- function(call) {
  call <- as.list(call)
  call[[1L]] <- if (is.symbol(call[[1L]])) call[[1L]] else quote(dpmode)
  for (name in intersect(names(call), c("data", "newdata"))) {
    if (!is.symbol(call[[name]])) call[[name]] <- as.symbol(name)
  }
  if ("formula" %in% names(call) && inherits(call$formula, "formula")) call$formula <- bare_formula(call$formula)
  known <- names(call) %in% c("data", "formula")
  for (i in seq_along(call)[-1L]) {
    if (!known[i] && !is_short(call[[i]])) call[[i]] <- quote(...)
  }
  as.call(call)
}

is_short <- function(x) {
  if (is.symbol(x)) return(TRUE)
  if (is.atomic(x)) return(length(x) <= 16L)
  is.call(x) && length(all.names(x)) <= 64L && all(vapply(as.list(x), is_short, NA))
}
