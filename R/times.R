# Dates and durations, which travel as seconds (since 1970, in UTC), as text with the digits their error supports.

time_units <- c(d = 86400, h = 3600, min = 60, s = 1, ms = 1e-3)

# A span of time in its largest fitting unit, such as "19.2 h".
span_text <- function(seconds, digits = 4L) {
  unit <- function(size) max(1e-3, time_units[time_units <= size])
  vapply(seconds, function(one) {
    if (is.na(one)) return("NA")
    # A zero is one of the unit that the others have.
    per <- unit(if (one == 0) max(abs(seconds), na.rm = TRUE) else abs(one))
    paste(format(one / per, digits = digits), names(time_units)[time_units == per])
  }, "")
}

# Dates to the day, minute or second: as their error (in seconds) asks for.
date_text <- function(seconds, error = 0) {
  step <- if (all(is.na(error)) || min(error, na.rm = TRUE) >= 43200) 86400 else if (min(error, na.rm = TRUE) >= 30) 60 else 1
  form <- c(`86400` = "%Y-%m-%d", `60` = "%Y-%m-%d %H:%M", `1` = "%Y-%m-%d %H:%M:%S")[[as.character(step)]]
  # Round first: format() would cut.
  format(as_moment(round(seconds / step) * step), form)
}

as_moment <- function(seconds) as.POSIXct(seconds, origin = "1970-01-01", tz = "UTC")

# Values of a coordinate or column of a kind ("number", "datetime", "timedelta") in the user's own type.
in_own_type <- function(values, kind) {
  switch(kind, datetime = as_moment(values), timedelta = as.difftime(values, units = "secs"), values)
}

# Estimates with their standard errors in brackets.
value_error <- function(value, error, digits, kind = "number") {
  text <- switch(kind,
    datetime = date_text(value, error), timedelta = span_text(value, digits), vapply(value, format, "", digits = digits)
  )
  ifelse(is.na(error), text, paste0(text, " (", width_text(error, kind, 2L), ")"))
}

# Widths, errors and distances along a coordinate: of dates and durations spans of time.
width_text <- function(value, kind, digits = 4L) {
  if (kind == "number") vapply(value, format, "", digits = digits, trim = TRUE) else span_text(value, digits)
}

# The two ends of a public range, with no digit lost.
bound_text <- function(pair, kind = "number") {
  pair <- as.double(unlist(pair))
  if (kind == "timedelta") return(span_text(pair, 10L))
  if (kind == "datetime") return(date_text(pair, if (all(pair %% 86400 == 0)) 86400 else if (all(pair %% 60 == 0)) 60 else 0))
  format(pair, big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE)
}

kind_of <- function(x, j) as.character(x$coordinates$kind[[j]])

# Kinds by column; of those that are not coordinates nothing is known, and they are numbers.
column_kinds <- function(x) stats::setNames(as.character(x$coordinates$kind), as.character(x$coordinates$column))

kind_in <- function(kinds, name) if (name %in% names(kinds)) kinds[[name]] else "number"
