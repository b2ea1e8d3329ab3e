# Private columns on their way to Python: plain vectors without attributes, and nothing but the used columns.

# The columns `names` of a data frame, tibble or data.table as a plain data frame.
wire_frame <- function(data, names = NULL) {
  own <- base::names(data)
  names <- if (is.null(names)) own else intersect(names, own)
  double <- unique(own[duplicated(own) & own %in% names])
  if (length(double)) {
    abort("DuplicateColumns", "two columns have the same name: ", paste(double, collapse = ", "))
  }
  columns <- lapply(stats::setNames(names, names), function(name) wire_column(data[[name]], name))
  structure(columns, class = "data.frame", row.names = .set_row_names(nrow(data)))
}

wire_column <- function(x, name) {
  if (inherits(x, "POSIXlt")) x <- as.POSIXct(x)
  if (length(dim(x)) > 1L) return(refuse_column(name, "a matrix"))
  if (is.factor(x)) {
    kind <- if (is.ordered(x)) c("ordered", "factor") else "factor"
    own <- plain_text(levels(x))
    # A level NA (of addNA) is no value either: such rows are missing.
    levels <- unique(own[!is.na(own)])
    return(structure(match(own, levels)[as.integer(x)], levels = levels, class = kind))
  }
  if (inherits(x, "integer64")) return(refuse_column(name, "integer64"))
  if (inherits(x, "Date")) return(structure(as.double(x), class = "Date"))
  if (inherits(x, "POSIXct")) return(structure(as.double(x), class = c("POSIXct", "POSIXt")))
  if (inherits(x, "difftime")) return(structure(as.double(x), class = "difftime", units = attr(x, "units")))
  if (is.logical(x) || is.integer(x) || is.double(x)) return(plain_vector(x))
  if (is.character(x)) {
    # Before anything is compared: one string of unknown bytes would have R compare all of them by their bytes,
    # and equal strings of two encodings were no longer equal.
    x <- plain_text(x)
    levels <- unique(x)
    levels <- levels[!is.na(levels)]
    return(structure(match(x, levels), levels = levels, class = "factor"))
  }
  refuse_column(name, class(x)[[1L]])
}

# Strings in UTF-8, each by itself; bytes that are none are written out as <e9>.
plain_text <- function(x) {
  raw <- Encoding(x) == "bytes"
  Encoding(x[raw]) <- "UTF-8"
  x[!raw] <- enc2utf8(x[!raw])
  bad <- !is.na(x) & !validUTF8(x)
  x[bad] <- iconv(x[bad], "UTF-8", "UTF-8", sub = "byte")
  x
}

plain_vector <- function(x) if (is.null(attributes(x))) x else as.vector(unclass(x))

refuse_column <- function(name, what) {
  more <- if (what == "integer64") "; turn it into numbers with as.numeric()" else ""
  abort("NonNumericColumn", "column ", name, " is ", what, ", not numbers, dates or a factor", more)
}

# Bounds: a named list of pairs, or a matrix with one row per column of the table.
wire_bounds <- function(bounds) {
  if (is.null(bounds)) return(NULL)
  if (is.matrix(bounds) && ncol(bounds) == 2L && !is.null(rownames(bounds))) {
    bounds <- stats::setNames(lapply(seq_len(nrow(bounds)), function(i) as.vector(bounds[i, ])), rownames(bounds))
  }
  if (!is.list(bounds) || is.null(names(bounds)) || !all(nzchar(names(bounds)))) {
    abort(
      "InvalidBounds",
      "bounds must be a named list of pairs, such as list(age = c(15, 90)), or a matrix with one named row per column"
    )
  }
  lapply(as.list(bounds), wire_value)
}

# Options: unnamed attributes that Python has no use for are dropped.
wire_value <- function(x) {
  if (is.list(x) && !is.data.frame(x)) return(lapply(x, wire_value))
  if (inherits(x, "POSIXlt")) x <- as.POSIXct(x)
  x
}
