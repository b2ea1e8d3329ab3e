# The one door to Python: call_python(name, ...) sends plain R data and returns plain R data.

session <- new.env(parent = emptyenv())

# Do one operation. Arguments that are NULL are sent as None; leave them out with drop_null().
call_python <- function(.operation, ...) {
  request <- serialize(list(.operation, named_list(list(...))), NULL, xdr = FALSE, version = 2L)
  reply <- unserialize(open_door()(request))
  for (item in reply$warnings) warning(as_condition(item, "warning"))
  if (isTRUE(reply$ok)) return(reply$value)
  if ("KeyboardInterrupt" %in% unlist(reply$error$classes)) raise_interrupt()
  stop(as_condition(reply$error, "error"))
}

# A function raw -> raw. Under rpy2 the Python side has put it there (use_door); else reticulate's.
open_door <- function() {
  if (is.null(session$door)) session$door <- reticulate_door()
  session$door
}

# Called by r_bridge.connect(): the door of the Python in which this R is embedded.
use_door <- function(door) {
  session$door <- door
  session$bridge <- "rpy2"
  invisible(NULL)
}

named_list <- function(x = list()) {
  if (is.null(names(x))) names(x) <- character(length(x))
  x
}

drop_null <- function(x) named_list(x[!vapply(x, is.null, logical(1L))])
