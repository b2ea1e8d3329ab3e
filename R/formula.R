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

# A formula as Python writes it: powers are **, and names that are no plain ones stand between back quotes. Written
# from the calls and not from deparse(), which quotes what R alone would not read.
formula_text <- function(formula) {
  paste(python_text(formula[[2L]], infix[["~"]]), "~", python_text(formula[[3L]], infix[["~"]]))
}

# How tightly operators bind; a minus or plus before one term binds like `unary`.
infix <- c(`~` = 1L, `|` = 2L, `+` = 3L, `-` = 3L, `*` = 4L, `/` = 4L, `%in%` = 5L, `%%` = 5L, `:` = 6L, `^` = 8L)
unary <- 7L

# One side or part of a formula. `least`: how tightly a part must bind here to stand without brackets.
python_text <- function(x, least = 0L) {
  if (is.symbol(x)) return(python_name(as.character(x)))
  if (is.numeric(x) && length(x) == 1L) return(number_text(as.double(x)))
  if (!is.call(x) || has_gaps(x)) return(paste(deparse(x), collapse = " "))
  head <- if (is.symbol(x[[1L]])) as.character(x[[1L]]) else ""
  if (head == "(" && length(x) == 2L) return(paste0("(", python_text(x[[2L]]), ")"))
  binds <- if (head %in% names(infix)) infix[[head]]
  if (!is.null(binds) && length(x) == 3L) return(in_brackets(infix_text(head, x[[2L]], x[[3L]], binds), binds < least))
  if (head %in% c("+", "-") && length(x) == 2L) {
    return(in_brackets(paste0(head, python_text(x[[2L]], unary)), unary < least))
  }
  # What has no name of a function, such as == and [, is for Python to refuse.
  if (nzchar(head) && make.names(head) == head) call_text(x) else paste(deparse(x), collapse = " ")
}

infix_text <- function(sign, left, right, binds) {
  power <- sign == "^"
  # Operators of one strength are read from the left, powers from the right; a power may have a minus.
  left <- python_text(left, binds + power)
  right <- python_text(right, if (power) unary else binds + 1L)
  paste(left, if (power) "**" else sign, right, sep = if (sign %in% c("^", "/", ":")) "" else " ")
}

call_text <- function(x) {
  parts <- as.list(x)[-1L]
  given <- vapply(parts, python_text, "")
  named <- if (is.null(names(parts))) FALSE else nzchar(names(parts))
  given[named] <- paste(names(parts)[named], "=", given[named])
  paste0(paste(deparse(x[[1L]]), collapse = " "), "(", paste(given, collapse = ", "), ")")
}

in_brackets <- function(text, needed) if (needed) paste0("(", text, ")") else text

# Whether a call leaves an argument empty, as x[, 1] does.
has_gaps <- function(x) any(vapply(seq_along(x), function(i) identical(x[[i]], quote(expr = )), NA))

# A number with no digit lost, and no more of them than that takes.
number_text <- function(x) {
  short <- deparse(x)
  if (identical(suppressWarnings(as.double(short)), x)) short else format(x, digits = 17L)
}

# Words that Python reads as its own.
python_words <- c(
  "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
  "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
  "pass", "raise", "return", "try", "while", "with", "yield"
)

# A column's name as it stands in a formula; `.` stays what it is, all other columns.
python_name <- function(name) {
  name <- plain_text(name)
  if (grepl("`", name, fixed = TRUE)) {
    abort("FormulaError", "the name ", name, " holds a back quote, which cannot stand in a formula; rename the column")
  }
  plain <- name == "." || (grepl("^[A-Za-z_][A-Za-z0-9_]*$", name) && !name %in% python_words)
  if (plain) name else paste0("`", name, "`")
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
