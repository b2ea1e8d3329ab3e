#' A privacy budget
#'
#' @param epsilon Privacy loss in total, a finite number > 0. There is no default.
#' @param delta A number strictly between 0 and 1, well below one over the number of records.
#' @return A list of class `dp_budget` with `epsilon` and `delta`.
#' @seealso [split_budget()] to divide it, [private_data()] to use it.
#' @examplesIf dpmode:::python_works()
#' dp_budget(2, 1e-6)
#' @export
dp_budget <- function(epsilon, delta) {
  given <- drop_null(list(
    epsilon = if (missing(epsilon)) NULL else epsilon,
    delta = if (missing(delta)) NULL else delta
  ))
  new_budget(do.call(call_python, c(list("budget"), given)))
}

new_budget <- function(x) structure(list(epsilon = x$epsilon, delta = x$delta), class = "dp_budget")

#' Divide a privacy budget
#'
#' By basic composition: both epsilon and delta in proportion to the shares, so that any releases that keep to
#' the parts keep to the whole together. The ledger of [private_data()] composes more tightly than that.
#'
#' @param budget A [dp_budget()].
#' @param shares Positive numbers, such as `c(1, 3)`.
#' @return A list of budgets.
#' @examplesIf dpmode:::python_works()
#' split_budget(dp_budget(2, 1e-6), c(1, 3))
#' @export
split_budget <- function(budget, shares) {
  check_budget(budget)
  parts <- call_python("budget_split", epsilon = budget$epsilon, delta = budget$delta, shares = as.list(as.double(shares)))
  lapply(parts, new_budget)
}

check_budget <- function(budget) {
  if (!inherits(budget, "dp_budget")) {
    abort("InvalidBudget", "budget must be made with dp_budget(epsilon, delta), got ", class(budget)[[1L]])
  }
}

#' @export
print.dp_budget <- function(x, ...) {
  cat("Privacy budget: epsilon ", format(x$epsilon), ", delta ", format(x$delta), "\n", sep = "")
  invisible(x)
}

#' Private rows behind one door
#'
#' For a study with several releases from the same rows: public bounds, one budget, and a ledger in which every
#' release is charged before the first row is read.
#'
#' The rows are held on the Python side. The object in R is only a name for them: it cannot be saved with
#' [saveRDS()] (a copy would carry a second, unguarded budget), and it says so when it is used in another session.
#'
#' @param data A data frame, tibble or data.table, or the path of a CSV or Parquet file. Only the columns with
#'   bounds, `person` and `weights` are looked at. Logical columns count as 0 and 1; dates and times are
#'   [Date] or [POSIXct]; a factor can be `person` only.
#' @param bounds PUBLIC bounds of each column that may be used, in its units: a named list of pairs such as
#'   `list(age = c(15, 90))`, known without looking at these rows; or a matrix with one named row per column.
#'   Values outside are moved to the bound; see `outside`.
#' @param budget A [dp_budget()]: the total of all releases.
#' @param ledger Path of a file that records every release and is shared by all processes that open it; in
#'   memory when `NULL`.
#' @param adjacency `"replace"`: neighbouring tables differ in one unit, their number is public.
#'   `"add_remove"`: one unit more or less, their number is private.
#' @param unit `"row"` or `"person"`: whose contribution is protected.
#' @param person Name of the column that identifies persons, for `unit = "person"`.
#' @param weights Name of a column of survey weights. A row then counts `weight / max_weight`.
#' @param max_weight PUBLIC ceiling of the weights.
#' @param outside `"clip"`: values outside the bounds count as at the bound; `"ignore"`: their rows count nothing.
#' @param n_guess,n_max Under `"add_remove"`: a public guess of the number of units, and a public ceiling.
#' @param datetimes Names of the columns of a CSV file that hold dates or times.
#' @param progress Whether to show a progress bar on long passes.
#' @param device Where the sums of a surface are computed. `"cuda"` needs the Python package CuPy and a GPU.
#' @param subset,na.action Refused, with the reason; see Details of [dp_modes()].
#' @param ... Not used: an unknown argument is refused.
#' @return An object of class `dp_private_data`, for the `data` argument of [dp_modes()].
#' @seealso [ledger()], [dp_budget()].
#' @examplesIf dpmode:::python_works()
#' study <- private_data(
#'   dp_data("wages"),
#'   bounds = list(age = c(15, 90), wage = c(1000, 300000)),
#'   budget = dp_budget(2, 1e-6)
#' )
#' study
#' @export
private_data <- function(data, bounds = NULL, budget, ledger = NULL, ..., adjacency = c("replace", "add_remove"),
                         unit = c("row", "person"), person = NULL, weights = NULL, max_weight = NULL,
                         outside = c("clip", "ignore"), n_guess = NULL, n_max = NULL, datetimes = NULL,
                         progress = NULL, device = c("cpu", "cuda"), subset, na.action) {
  refuse_dots(...)
  refuse_row_choice(!missing(subset), FALSE, if (!missing(na.action)) na.action)
  if (missing(budget)) abort("InvalidBudget", "budget is missing and has no default; give dp_budget(epsilon, delta)")
  check_budget(budget)
  bounds <- wire_bounds(bounds)
  options <- drop_null(list(
    ledger = if (!is.null(ledger)) path.expand(ledger),
    adjacency = choice(adjacency, c("replace", "add_remove")), unit = choice(unit, c("row", "person")),
    outside = choice(outside, c("clip", "ignore")), person = person, weights = weights, max_weight = max_weight,
    n_guess = n_guess, n_max = n_max, datetimes = if (!is.null(datetimes)) as.list(datetimes), progress = progress,
    device = choice(device, c("cpu", "cuda"))
  ))
  table <- wire_source(data, names = c(names(bounds), person, weights))
  facts <- call_python(
    "open", data = table, bounds = bounds, epsilon = budget$epsilon, delta = budget$delta, options = options
  )
  new_private_data(facts)
}

# The first entry when the argument was left at its default, else what was given.
choice <- function(value, default) if (identical(value, default)) default[[1L]] else value

new_private_data <- function(facts) {
  handle <- new.env(parent = emptyenv())
  handle$id <- facts$id
  handle$session <- facts$session
  handle$columns <- as.character(facts$columns)
  door <- session$door
  reg.finalizer(handle, function(handle) {
    # Only if the same door is still open: never start Python to forget something.
    if (identical(session$door, door)) {
      try(call_python("close", id = handle$id, session = handle$session), silent = TRUE)
    }
  })
  structure(list(handle = handle), class = "dp_private_data")
}

handle_of <- function(x) list(id = x$handle$id, session = x$handle$session)

study_facts <- function(x) do.call(call_python, c(list("study"), handle_of(x)))

#' @export
print.dp_private_data <- function(x, ...) {
  cat(format(x, ...), sep = "\n")
  invisible(x)
}

#' @export
format.dp_private_data <- function(x, ...) {
  facts <- tryCatch(study_facts(x), dpmode_StaleHandle = identity)
  if (inherits(facts, "error")) return(c("Private data", strwrap(conditionMessage(facts), indent = 2L, exdent = 2L)))
  units <- if (is.null(facts$n_units)) "a private number of" else format(facts$n_units, big.mark = ",")
  bounds <- vapply(names(facts$bounds), function(name) {
    paste0(name, " [", paste(bound_text(facts$bounds[[name]], kind_in(facts$kinds, name)), collapse = ", "), "]")
  }, "")
  c(
    paste0("Private data: ", units, " ", facts$unit, "s; protected: ", adjacency_words(facts$adjacency, facts$unit)),
    strwrap(paste0("Public bounds: ", paste(bounds, collapse = ", ")), indent = 2L, exdent = 4L),
    paste0("  Budget: epsilon ", format(facts$epsilon), ", delta ", format(facts$delta), "; spent ",
           format(facts$epsilon_spent, digits = 4L), " in ", facts$n_releases, " release",
           if (facts$n_releases != 1L) "s", ", left ", format(facts$epsilon_left, digits = 4L)),
    paste0("  Ledger: ", if (is.null(facts$ledger)) "in memory" else facts$ledger),
    "  The rows are not in this object: it is a name for them in this session, and cannot be saved."
  )
}

adjacency_words <- function(adjacency, unit) {
  paste(if (adjacency == "replace") "replacing one" else "adding or removing one", unit)
}

#' @export
summary.dp_private_data <- function(object, ...) ledger(object)

#' The ledger of a study
#'
#' @param x A [private_data()] object.
#' @param ... Not used.
#' @return A data frame of class `dp_ledger`, one row per release: its label, mechanism, epsilon and delta; the
#'   `cumulative` epsilon of all so far, tightly composed; their plain `sum`; what is `left`; status and time.
#' @examplesIf dpmode:::python_works()
#' study <- private_data(
#'   dp_data("wages"), bounds = list(age = c(15, 90)), budget = dp_budget(1, 1e-6)
#' )
#' ledger(study)
#' @export
ledger <- function(x, ...) UseMethod("ledger")

#' @export
ledger.dp_private_data <- function(x, ...) {
  found <- do.call(call_python, c(list("ledger"), handle_of(x)))
  table <- found$table
  structure(table, class = c("dp_ledger", "data.frame"), text = found$text)
}

#' @export
print.dp_ledger <- function(x, ...) {
  text <- attr(x, "text")
  if (is.null(text) || !identical(names(x), ledger_columns)) return(NextMethod())
  cat(text, "\n", sep = "")
  invisible(x)
}

ledger_columns <- c("number", "label", "mechanism", "epsilon", "delta", "cumulative", "sum", "left", "status", "time")

#' @export
`[.dp_ledger` <- function(x, ...) {
  attr(x, "text") <- NULL
  class(x) <- "data.frame"
  x[...]
}

#' @export
as.data.frame.dp_ledger <- function(x, ...) {
  attr(x, "text") <- NULL
  class(x) <- "data.frame"
  x
}

# What a model is given as data, as the door takes it.
wire_source <- function(data, names = NULL) {
  if (inherits(data, "dp_private_data")) return(handle_of(data))
  if (inherits(data, "dp_surface")) return(list(surface = data$state))
  if (inherits(data, "dp_result")) return(list(surface = surface(data)$state))
  if (is.character(data) && length(data) == 1L && is.null(dim(data))) return(path.expand(data))
  if (is.matrix(data) && !is.null(colnames(data))) data <- as.data.frame(data)
  if (!is.data.frame(data)) {
    abort(
      "UnsupportedSource", "data must be a data frame, the path of a CSV or Parquet file, a private_data() object, ",
      "or a released surface; got ", class(data)[[1L]]
    )
  }
  wire_frame(data, names)
}

# Which rows count must not be decided in R: it would be a use of private rows outside the ledger.
refuse_row_choice <- function(subset, weights, na.action = NULL) {
  if (subset) {
    abort(
      "InvalidArgument", "subset is refused: under the guarantee the number of rows is public, and a number of rows ",
      "that is chosen by their values is not. Use bounds with outside = \"ignore\" in private_data(): rows outside ",
      "then count nothing; or subset by a public column before the study, and treat what is left as the study's data"
    )
  }
  if (weights) {
    abort(
      "InvalidArgument", "weights is refused here: weights need a public ceiling. Use ",
      "private_data(data, weights = \"w\", max_weight = ...) and give the result as data"
    )
  }
  if (!is.null(na.action)) {
    abort(
      "InvalidArgument", "na.action is refused: a row with a missing value in a used column counts nothing, and stays in ",
      "the public number of rows. Omitting it beforehand (na.omit) would make that number depend on private values, ",
      "and failing (na.fail) would tell whether there is one"
    )
  }
}
