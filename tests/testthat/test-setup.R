test_that("the report of the set-up says which Python works", {
  need_python()
  expect_output(found <- dpmode_sitrep(), "status +all is well")
  expect_true(found$ok)
  expect_identical(found$pydpmode, as.character(packageVersion("dpmode")))
})

test_that("without a usable Python the message says what to do", {
  problem <- tryCatch(dpmode:::abort_python("No module named 'numpy'"), error = identity)
  expect_s3_class(problem, "dpmode_PythonNotUsable")
  expect_match(conditionMessage(problem), "install_pydpmode\\(\\)")
})

test_that("candidates are found in the stated order", {
  folder <- tempfile()
  dir.create(file.path(folder, ".venv", "bin"), recursive = TRUE)
  dir.create(file.path(folder, "deep", "er"), recursive = TRUE)
  file.create(file.path(folder, ".venv", "bin", "python"))
  old <- setwd(file.path(folder, "deep", "er"))
  kept <- Sys.getenv(c("RETICULATE_PYTHON", "VIRTUAL_ENV"), NA)
  on.exit({
    setwd(old)
    for (name in names(kept)) if (!is.na(kept[[name]])) do.call(Sys.setenv, as.list(kept[name]))
    unlink(folder, recursive = TRUE)
  })
  Sys.unsetenv(c("RETICULATE_PYTHON", "VIRTUAL_ENV"))
  found <- dpmode:::python_candidates()
  expect_match(found$path[1], ".venv/bin/python", fixed = TRUE)
  options(dpmode.python = file.path(folder, ".venv", "bin", "python"))
  expect_match(dpmode:::python_candidates()$why[1], "dpmode.python")
  options(dpmode.python = NULL)
})

test_that("the Python sources travel with the package, with their requirements", {
  expect_true(file.exists(file.path(dpmode:::shipped_sources(), "pydpmode", "__init__.py")))
  expect_true(file.exists(file.path(dpmode:::shipped_sources(), "r_bridge", "door.py")))
  expect_true(any(grepl("^numpy>=", dpmode:::python_requirements())))
})

# A stand-in for a Python: a script that prints what one would say, and fails for reticulate's script if told so.
pretend_python <- function(version, shared = 1L, describes = TRUE) {
  path <- tempfile("python")
  writeLines(c(
    "#!/bin/sh", paste("[ \"$1\" = -c ] || exit", if (describes) 0 else 1),
    paste0("printf '", version, "\\n/lib/of/it\\n", shared, "\\n'")
  ), path)
  Sys.chmod(path, "755")
  path
}

test_that("a Python that R cannot use is refused before anything is made, with the reason", {
  skip_on_os("windows")
  why <- function(...) tryCatch(install_pydpmode(...), error = conditionMessage)
  old <- Sys.getenv("WORKON_HOME", NA)
  home <- tempfile()
  Sys.setenv(WORKON_HOME = home)
  on.exit(dpmode:::set_variable("WORKON_HOME", old))
  expect_match(why(pretend_python("3.10.4")), "is 3.10.4, and 3.11 or newer is needed", fixed = TRUE)
  expect_match(why(pretend_python("3.11.4", shared = 0L)), "no shared library")
  expect_match(why(pretend_python("3.13.0", describes = FALSE)), "cannot use .* \\(3.13.0\\): give a newer reticulate")
  expect_match(why("no-such-python"), "There is no Python no-such-python")
  expect_match(why(pretend_python("")), "does not start")
  expect_s3_class(tryCatch(install_pydpmode("no-such-python"), error = identity), "dpmode_PythonNotUsable")
  expect_false(dir.exists(home))
})

test_that("a suitable Python is described, and its library comes first for what R starts", {
  skip_on_os("windows")
  path <- pretend_python("3.11.9")
  found <- dpmode:::base_python(path)
  expect_identical(found[c("path", "version", "folder")], list(path = path, version = "3.11.9", folder = "/lib/of/it"))
  old <- Sys.getenv("LD_LIBRARY_PATH", NA)
  on.exit(dpmode:::set_variable("LD_LIBRARY_PATH", old))
  Sys.setenv(LD_LIBRARY_PATH = "/usr/lib/R/lib")
  expect_identical(dpmode:::path_with_library("/lib/of/it"), "/lib/of/it:/usr/lib/R/lib")
  expect_identical(dpmode:::path_with_library(""), "/usr/lib/R/lib")
  dpmode:::python_facts(path)
  expect_identical(Sys.getenv("LD_LIBRARY_PATH"), "/usr/lib/R/lib")
})

test_that("a Python that R starts can download: it has ssl", {
  need_python()
  python <- dpmode:::call_python("versions")$executable
  old <- Sys.getenv("LD_LIBRARY_PATH", NA)
  on.exit(dpmode:::set_variable("LD_LIBRARY_PATH", old))
  Sys.setenv(LD_LIBRARY_PATH = dpmode:::path_with_library(dpmode:::python_facts(python)$folder))
  expect_identical(system2(python, c("-c", shQuote("import ssl"))), 0L)
})

test_that("an environment that fails is not called installed", {
  skip_on_os("windows")
  expect_error(
    dpmode:::try_environment("/no/such/python"), "a fresh R cannot use them", class = "dpmode_PythonNotUsable"
  )
})
