# Finding Python, and saying what is wrong with it.

minimal_python <- "3.11"

# Where the Python sources in this package are.
shipped_sources <- function() system.file("python", package = "dpmode")

# Candidates in order of preference, as a data frame: path, why.
python_candidates <- function() {
  found <- list()
  add <- function(path, why) {
    if (length(path) == 1L && nzchar(path) && file.exists(path)) {
      found[[length(found) + 1L]] <<- data.frame(path = path, why = why)
    }
  }
  add(Sys.getenv("RETICULATE_PYTHON"), "environment variable RETICULATE_PYTHON")
  add(getOption("dpmode.python", ""), "option dpmode.python")
  add(python_of(Sys.getenv("VIRTUAL_ENV")), "environment variable VIRTUAL_ENV")
  folder <- normalizePath(getwd(), mustWork = FALSE)
  repeat {
    add(python_of(file.path(folder, ".venv")), "a folder .venv here or above")
    if (dirname(folder) == folder) break
    folder <- dirname(folder)
  }
  home <- Sys.getenv("WORKON_HOME", path.expand("~/.virtualenvs"))
  add(python_of(file.path(home, environment_name)), "made by install_pydpmode()")
  if (length(found)) do.call(rbind, found) else data.frame(path = character(), why = character())
}

environment_name <- "r-dpmode"

python_of <- function(environment) {
  if (!nzchar(environment)) return("")
  path <- file.path(environment, if (.Platform$OS.type == "windows") "Scripts/python.exe" else "bin/python")
  if (file.exists(path)) path else ""
}

# Start Python (or use the one that runs) and return the door.
reticulate_door <- function() {
  start_python()
  door <- tryCatch(import_door(), error = function(problem) abort_python(conditionMessage(problem)))
  check_version(door)
  restore_library_path(door)
  session$bridge <- "reticulate"
  function(request) {
    reticulate::py_to_r(door$dispatch_bytes(reticulate::r_to_py(request)))
  }
}

start_python <- function() {
  if (reticulate::py_available(initialize = FALSE)) {
    session$python_why <- "already started in this session"
    return(invisible())
  }
  candidates <- python_candidates()
  # Newer versions of reticulate download a Python of their own unless told not to.
  old <- Sys.getenv("RETICULATE_USE_MANAGED_VENV", NA)
  Sys.setenv(RETICULATE_USE_MANAGED_VENV = "no")
  on.exit(if (is.na(old)) Sys.unsetenv("RETICULATE_USE_MANAGED_VENV") else Sys.setenv(RETICULATE_USE_MANAGED_VENV = old))
  if (nrow(candidates)) {
    session$python_why <- candidates$why[[1L]]
    reticulate::use_python(candidates$path[[1L]], required = TRUE)
  } else {
    session$python_why <- "reticulate's choice"
  }
  # A pyproject.toml nearby makes reticulate look for Poetry and warn; what it finds is said below.
  started <- tryCatch(suppressWarnings(reticulate::py_available(initialize = TRUE)), error = function(problem) {
    abort_python(conditionMessage(problem))
  })
  if (!started) abort_python("no Python was found")
  version <- as.character(reticulate::py_config()$version)
  if (utils::compareVersion(version, minimal_python) < 0) {
    abort_python(
      "Python ", minimal_python, " or newer is needed, but ", reticulate::py_config()$python, " (",
      session$python_why, ") is ", version
    )
  }
  invisible()
}

# An installed pydpmode of the same version is preferred; else the sources in this package are used.
import_door <- function() {
  installed <- python_version_of("pydpmode")
  bridge <- python_has("r_bridge")
  if (!is.na(installed) && installed == own_version() && bridge) {
    session$sources <- "installed"
  } else {
    session$sources <- "shipped"
    session$other_version <- installed
    path <- reticulate::import("sys", convert = FALSE)$path
    path$insert(0L, shipped_sources())
  }
  reticulate::import("r_bridge.door", convert = FALSE)
}

own_version <- function() as.character(utils::packageVersion("dpmode"))

python_has <- function(module) {
  util <- reticulate::import("importlib.util", convert = TRUE)
  !is.null(util$find_spec(module))
}

python_version_of <- function(module) {
  if (!python_has(module)) return(NA_character_)
  tryCatch(
    as.character(reticulate::import(module, convert = TRUE)[["__version__"]]),
    error = function(problem) NA_character_
  )
}

check_version <- function(door) {
  running <- as.character(reticulate::py_to_r(door$pydpmode[["__version__"]]))
  if (running == own_version()) {
    if (!is.null(session$other_version) && !is.na(session$other_version)) {
      warning(as_condition(list(
        classes = "VersionsDiffer",
        message = paste0(
          "the installed Python package pydpmode is version ", session$other_version, ", this R package is ",
          own_version(), ": the Python sources inside the R package are used. To end this message: ",
          "pip install pydpmode==", own_version()
        )
      ), "warning"))
    }
    return(invisible())
  }
  abort(
    "VersionsDiffer", "Python has already loaded pydpmode ", running, ", and this R package needs ", own_version(),
    "; restart R, or install the same version of both", parents = "PydpmodeError"
  )
}

# R's start-up file makes every child process load the system's libpython. Children of this session that
# are Pythons would then load the wrong one: the running Python's own library folder comes first.
restore_library_path <- function(door) {
  folder <- reticulate::py_to_r(door$library_folder())
  old <- Sys.getenv("LD_LIBRARY_PATH")
  if (nzchar(folder) && !startsWith(old, folder)) {
    Sys.setenv(LD_LIBRARY_PATH = if (nzchar(old)) paste(folder, old, sep = ":") else folder)
  }
}

abort_python <- function(...) {
  abort(
    "PythonNotUsable", "dpmode needs Python ", minimal_python, " or newer with the packages of pydpmode. ", ...,
    "\nRun install_pydpmode() to make an environment for it, or name a Python that has them: ",
    "options(dpmode.python = \"/path/to/python\"). dpmode_sitrep() tells more.", parents = "PydpmodeError"
  )
}

#' Which Python is used, and what is wrong with it
#'
#' Prints the versions of R, of this package, of Python and of the Python packages; when something is
#' missing, what to do about it. Useful in a report of a problem.
#'
#' @return A list with what was printed, invisibly: `ok` is whether dpmode can work.
#' @examplesIf dpmode:::python_works()
#' dpmode_sitrep()
#' @export
dpmode_sitrep <- function() {
  say <- function(name, ...) cat(sprintf("%-12s", name), ..., "\n", sep = "")
  out <- list(r = as.character(getRversion()), dpmode = own_version(), ok = FALSE)
  say("R", out$r)
  say("dpmode", out$dpmode)
  say("reticulate", as.character(utils::packageVersion("reticulate")))
  versions <- tryCatch(call_python("versions"), error = identity)
  if (inherits(versions, "error")) {
    out$problem <- conditionMessage(versions)
    candidates <- python_candidates()
    for (i in seq_len(nrow(candidates))) say("candidate", candidates$path[i], " (", candidates$why[i], ")")
    say("PROBLEM", out$problem)
    return(invisible(out))
  }
  out <- c(out[c("r", "dpmode")], versions, list(bridge = session$bridge, ok = TRUE))
  say("bridge", out$bridge)
  say("Python", versions$python, " at ", versions$executable, if (!is.null(session$python_why)) paste0(" (", session$python_why, ")"))
  say("pydpmode", versions$pydpmode, " at ", versions$package)
  for (name in c("numpy", "scipy", "pandas", "opendp")) say(name, versions[[name]])
  say("status", "all is well")
  invisible(out)
}

# Whether Python can be used: for examples and tests.
python_works <- function() {
  tryCatch(is.list(call_python("versions")), error = function(problem) FALSE)
}
