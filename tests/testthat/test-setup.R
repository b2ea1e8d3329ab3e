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
