# Errors and warnings of the Python side as R conditions, with the Python classes in their class.

# list(classes = c("BudgetExceeded", "PydpmodeError"), message = "...") -> a condition
as_condition <- function(data, type = c("error", "warning")) {
  type <- match.arg(type)
  classes <- as.character(unlist(data$classes))
  structure(
    class = c(paste0("dpmode_", classes), paste0("dpmode_", type), type, "condition"),
    list(message = data$message, call = NULL, python_class = if (length(classes)) classes[[1L]] else NA_character_)
  )
}

# An error that is found on the R side: of the same classes as if Python had found it.
abort <- function(class, ..., parents = c("InvalidArgument", "PydpmodeError")) {
  stop(as_condition(list(classes = unique(c(class, parents)), message = paste0(...)), "error"))
}

raise_interrupt <- function() {
  # As a Ctrl-C during R code: handlers for `interrupt` see it, otherwise back to the top level.
  signalCondition(structure(
    class = c("dpmode_interrupt", "interrupt", "condition"),
    list(message = "interrupted", call = NULL)
  ))
  if (interactive()) invokeRestart("abort")
  stop("interrupted", call. = FALSE)
}

refuse_dots <- function(...) {
  if (...length() == 0L) return(invisible())
  given <- names(list(...))
  if (is.null(given)) given <- rep("", ...length())
  named <- given[nzchar(given)]
  hint <- if ("device" %in% named) "; the device belongs to the data: give private_data(..., device = ) as data"
  abort(
    "InvalidArgument",
    if (length(named)) paste0("unknown argument", if (length(named) > 1L) "s", ": ", paste(named, collapse = ", "))
    else "an argument without a name is one too many",
    if (is.null(hint)) "; see the help page for those there are" else hint
  )
}
