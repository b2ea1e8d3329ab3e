# A Python environment for this package: made, filled, and tried in a fresh R.

#' Install the Python packages that dpmode needs
#'
#' Makes a virtual environment of its own (`r-dpmode`) and installs into it what the Python sources in this
#' package need; `pydpmode` itself travels in this package. Then a fresh R is started to see whether it works. Later
#' sessions find the environment by themselves.
#'
#' @param python A Python 3.11 or newer to make the environment with: its path, or a name such as `"python3.11"`; the
#'   first suitable one on the path when omitted. R loads it as a shared library, which Debian's Pythons have.
#' @param ... Further arguments of [reticulate::virtualenv_install()].
#' @return The path of the environment's Python, invisibly.
#' @seealso [dpmode_sitrep()]
#' @examples
#' \dontrun{
#' install_pydpmode()
#' }
#' @export
install_pydpmode <- function(python = NULL, ...) {
  found <- if (reticulate::virtualenv_exists(environment_name)) own_environment(python) else base_python(python)
  old <- Sys.getenv("LD_LIBRARY_PATH", NA)
  on.exit(set_variable("LD_LIBRARY_PATH", old))
  set_variable("LD_LIBRARY_PATH", path_with_library(found$folder))
  if (!reticulate::virtualenv_exists(environment_name)) make_environment(found$path)
  tryCatch(
    reticulate::virtualenv_install(environment_name, packages = python_requirements(), ...),
    error = function(problem) {
      abort_install(
        "The packages could not be installed; pip's own words are above. Is there a network, or a mirror in pip's ",
        "settings? (", conditionMessage(problem), ")"
      )
    }
  )
  set_variable("LD_LIBRARY_PATH", old)
  path <- reticulate::virtualenv_python(environment_name)
  try_environment(path)
  message(after_install(path))
  invisible(path)
}

# The requirements are written once, in the Python package's own metadata; this list is made from it.
python_requirements <- function() {
  readLines(system.file("python-requirements.txt", package = "dpmode"))
}

# What is left to do before a session uses the new environment.
after_install <- function(path) {
  first <- python_candidates()[1L, ]
  if (!same_file(first$path, path)) {
    return(paste0(
      "Installed: ", path, " works. But dpmode will use ", first$path, " (", first$why, "), which comes first: see ",
      "dpmode_sitrep()"
    ))
  }
  if (reticulate::py_available(initialize = FALSE)) return(paste0("Installed. Restart R; dpmode then uses ", path))
  paste0("Installed: dpmode uses ", path)
}

same_file <- function(a, b) normalizePath(a, mustWork = FALSE) == normalizePath(b, mustWork = FALSE) && dirname(a) == dirname(b)

make_environment <- function(python) {
  tryCatch(
    reticulate::virtualenv_create(environment_name, python = python, packages = NULL, module = "venv"),
    error = function(problem) {
      # A half-made one would be taken for a whole one at the next try.
      unlink(file.path(reticulate::virtualenv_root(), environment_name), recursive = TRUE)
      abort_install(
        "No virtual environment could be made with ", python, "; its own words are above. Where the module venv or ",
        "ensurepip is missing, install it (Debian: apt-get install python3-venv). (", conditionMessage(problem), ")"
      )
    }
  )
}

# The environment that is there already: it is filled again, and not made anew with another Python.
own_environment <- function(python) {
  path <- reticulate::virtualenv_python(environment_name)
  found <- python_facts(path)
  again <- paste0(
    "; to make it anew: reticulate::virtualenv_remove(\"", environment_name, "\"), then install_pydpmode() again"
  )
  problem <- python_problem(found)
  if (!is.null(problem)) abort_install("The environment ", environment_name, " is there, but ", problem, again)
  if (!is.null(python)) {
    wanted <- base_python(python)
    if (wanted$version != found$version) {
      abort_install("The environment ", environment_name, " is there, with Python ", found$version, again)
    }
  }
  found
}

# A Python to make the environment with: the one that was named, or the first on the path that will do.
base_python <- function(python = NULL) {
  named <- if (is.null(python)) c("python3", "python", paste0("python3.", 11:14)) else python
  found <- path.expand(ifelse(file.exists(path.expand(named)), named, unname(Sys.which(named))))
  found <- found[nzchar(found) & !is.na(found)]
  if (!length(found)) {
    abort_install(
      if (is.null(python)) "There is no python3 on the path" else paste0("There is no Python ", python),
      "; install one first (Debian: apt-get install python3-venv)."
    )
  }
  problems <- character()
  for (path in found) {
    facts <- python_facts(path)
    problem <- python_problem(facts)
    if (is.null(problem)) return(facts)
    problems <- c(problems, problem)
  }
  abort_install("No suitable Python: ", paste(unique(problems), collapse = "; "), ".")
}

# Version of a Python, the folder of its library, and whether R can load that library.
python_facts <- function(path) {
  code <- paste(
    "import sys, sysconfig; get = sysconfig.get_config_var",
    "print('%d.%d.%d' % sys.version_info[:3])",
    "print(get('LIBDIR') or '')",
    "print(int(bool(get('Py_ENABLE_SHARED') or get('PYTHONFRAMEWORK')) or sys.platform == 'win32'))",
    sep = "; "
  )
  old <- Sys.getenv("LD_LIBRARY_PATH", NA)
  on.exit(set_variable("LD_LIBRARY_PATH", old))
  Sys.unsetenv("LD_LIBRARY_PATH")
  told <- tryCatch(
    suppressWarnings(system2(path, c("-c", shQuote(code)), stdout = TRUE, stderr = FALSE)), error = function(problem) NULL
  )
  if (length(told) != 3L || !grepl("^[0-9.]+$", told[[1L]])) told <- c(NA, "", "0")
  list(
    path = path, version = told[[1L]], folder = told[[2L]], shared = told[[3L]] == "1", described = reticulate_describes(path)
  )
}

# reticulate asks every Python about itself with this script; its older versions fail at Python 3.12.
reticulate_describes <- function(path) {
  script <- system.file("config", "config.py", package = "reticulate")
  if (!nzchar(script)) return(TRUE)
  status <- tryCatch(
    suppressWarnings(system2(path, shQuote(script), stdout = FALSE, stderr = FALSE)), error = function(problem) 1L
  )
  status == 0L
}

# Why a Python will not do; NULL where it will.
python_problem <- function(found) {
  if (is.na(found$version)) return(paste(found$path, "does not start"))
  if (utils::compareVersion(found$version, minimal_python) < 0) {
    return(paste0(found$path, " is ", found$version, ", and ", minimal_python, " or newer is needed"))
  }
  if (!found$shared) {
    return(paste0(
      found$path, " has no shared library for R to load (Debian's Python has one; pyenv: ",
      "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install ", found$version, ")"
    ))
  }
  if (!found$described) {
    return(paste0(
      "reticulate ", utils::packageVersion("reticulate"), " cannot use ", found$path, " (", found$version,
      "): give a newer reticulate or an older Python, such as install_pydpmode(\"python3.11\")"
    ))
  }
  NULL
}

# R makes its child processes load the system's libpython: the wrong one for a Python from elsewhere, which then has
# no ssl, so that pip cannot download.
path_with_library <- function(folder) {
  old <- Sys.getenv("LD_LIBRARY_PATH")
  paste(c(folder, old)[nzchar(c(folder, old))], collapse = ":")
}

set_variable <- function(name, value) {
  if (is.na(value)) Sys.unsetenv(name) else do.call(Sys.setenv, stats::setNames(list(value), name))
}

# A fresh R tells whether the environment works: this one may have started another Python already.
try_environment <- function(path) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(c(
    paste0(".libPaths(", paste(deparse(.libPaths()), collapse = ""), ")"),
    paste0("Sys.setenv(RETICULATE_PYTHON = ", deparse(path), ")"),
    "found <- dpmode::dpmode_sitrep()",
    "quit(status = if (found$ok) 0L else 1L)"
  ), script)
  rscript <- file.path(R.home("bin"), if (.Platform$OS.type == "windows") "Rscript.exe" else "Rscript")
  told <- suppressWarnings(system2(rscript, shQuote(script), stdout = TRUE, stderr = TRUE))
  status <- attr(told, "status")
  if (!is.null(status) && status != 0L) {
    abort_install("The packages are installed, but a fresh R cannot use them:\n", paste(told, collapse = "\n"))
  }
}

abort_install <- function(...) {
  abort(
    "PythonNotUsable", "install_pydpmode() stopped. ", ..., "\nA Python of your own that has the packages can be named: ",
    "options(dpmode.python = \"/path/to/python\").", parents = "PydpmodeError"
  )
}
