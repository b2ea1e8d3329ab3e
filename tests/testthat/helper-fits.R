# Without a usable Python nothing of this package works: tests are then skipped, and the continuous integration
# (DPMODE_REQUIRE_PYTHON) fails instead.
need_python <- function() {
  if (dpmode:::python_works()) return(invisible())
  problem <- tryCatch(dpmode:::call_python("versions"), error = conditionMessage)
  if (nzchar(Sys.getenv("DPMODE_REQUIRE_PYTHON"))) stop("Python is required here: ", problem)
  skip(paste("no usable Python:", problem))
}

square <- list(x = c(-8, 8), y = c(-8, 8))

points_table <- function(n = 1500, seed = 1) dp_data("four_gaussians", n = n, seed = seed)

# Fits that many tests look at; made once. A seed marks them as simulated.
fits <- new.env()

fit_of <- function(name) {
  need_python()
  if (is.null(fits[[name]])) {
    fits[[name]] <- switch(name,
      plane = dp_modes(~ x + y, points_table(), bounds = square, epsilon = 2, delta = 1e-5, seed = 1),
      line = dp_modes(~x, points_table(), bounds = square["x"], epsilon = 2, delta = 1e-5, seed = 1),
      log = dp_modes(~ log(wage),
        dp_data("wages"), bounds = list(wage = c(1000, 300000)), epsilon = 1, delta = 1e-6, seed = 1
      )
    )
  }
  fits[[name]]
}

# The class of what is raised, most special first.
classes_of <- function(expr) class(tryCatch(expr, error = identity))

withr_file <- function(ending, frame = parent.frame()) {
  file <- tempfile(fileext = ending)
  do.call(on.exit, list(substitute(unlink(file), list(file = file)), add = TRUE), envir = frame)
  file
}
