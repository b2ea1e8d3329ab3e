# A value that occurs nowhere by chance: its bytes must not be in anything that is kept.
canary <- 1234.56789012345

holds <- function(object, value) {
  bytes <- serialize(object, NULL, xdr = FALSE, ascii = FALSE)
  pattern <- writeBin(value, raw(), endian = "little")
  any(vapply(which(bytes == pattern[1]), function(i) {
    i + 7L <= length(bytes) && identical(bytes[i + 0:7], pattern)
  }, NA))
}

test_that("the search for a planted value works", {
  expect_true(holds(list(a = c(1, canary)), canary))
  expect_false(holds(list(a = c(1, 2)), canary))
})

private_table <- function() {
  set.seed(2)
  data.frame(x = c(canary, rnorm(1200, 1000, 100)), note = "private text")
}

# In a function, so that the formula's environment holds the rows.
fit_inside <- function(call_by = "name") {
  secret <- private_table()
  form <- ~x
  if (call_by == "name") {
    return(dp_modes(form, secret, bounds = list(x = c(0, 2000)), epsilon = 1, delta = 1e-5))
  }
  if (call_by == "value") {
    return(do.call(dp_modes, list(form, secret, bounds = list(x = c(0, 2000)), epsilon = 1, delta = 1e-5)))
  }
  do.call(dp_modes, list(form, data = secret, bounds = list(x = c(0, 2000)), epsilon = 1, delta = 1e-5))
}

test_that("no row is in a result, its call, its formula, its surface or its tables", {
  need_python()
  for (by in c("name", "value", "named value")) {
    fit <- fit_inside(by)
    kept <- list(fit, summary(fit), surface(fit), tidy(fit), glance(fit), fit$call, formula(fit), privacy(fit))
    expect_false(holds(kept, canary))
    expect_false(any(grepl("private text", rawToChar(serialize(kept, NULL, ascii = TRUE)), fixed = TRUE)))
    expect_identical(environment(formula(fit)), globalenv())
  }
})

test_that("an error does not hold the rows either", {
  need_python()
  problem <- tryCatch(
    do.call(dp_modes, list(~x, private_table(), bounds = list(x = c(0, 2000)), delta = 1e-5)), error = identity
  )
  expect_s3_class(problem, "dpmode_InvalidBudget")
  expect_false(holds(problem, canary))
})

test_that("a private table is a name: it holds no row and cannot be saved", {
  need_python()
  study <- private_data(private_table(), bounds = list(x = c(0, 2000)), budget = dp_budget(1, 1e-5))
  expect_false(holds(study, canary))
  expect_output(print(study), "cannot be saved")
  file <- withr_file(".rds")
  saveRDS(study, file)
  old <- readRDS(file)
  old$handle$session <- "another"
  expect_output(print(old), "another session")
  expect_error(dp_modes(~x, old, epsilon = 0.5), class = "dpmode_StaleHandle")
})

test_that("the ledger charges, refuses and keeps", {
  need_python()
  file <- withr_file(".jsonl")
  study <- private_data(points_table(), bounds = square, budget = dp_budget(1, 1e-5), ledger = file)
  dp_modes(~x, study, epsilon = 0.4, label = "first")
  expect_error(dp_modes(~y, study, epsilon = 3), class = "dpmode_BudgetExceeded")
  book <- ledger(study)
  expect_identical(book$label, "first")
  expect_identical(book$epsilon, 0.4)
  expect_lt(book$left, 1)
  expect_output(print(book), "Ledger")
  again <- private_data(points_table(), bounds = square, budget = dp_budget(1, 1e-5), ledger = file)
  expect_identical(ledger(again)$label, "first")
  expect_error(
    private_data(points_table(), bounds = square, budget = dp_budget(2, 1e-5), ledger = file), class = "dpmode_LedgerMismatch"
  )
})

test_that("persons, weights and add/remove are reached", {
  need_python()
  table <- points_table()
  table$id <- rep(c("ann", "bob", "cem"), each = 500)
  table$w <- rep(1:2, 750)
  persons <- private_data(table, bounds = square, budget = dp_budget(1, 1e-5), unit = "person", person = "id")
  expect_output(print(persons), "3 persons")
  weighted <- private_data(table, bounds = square, budget = dp_budget(1, 1e-5), weights = "w", max_weight = 2)
  fit <- dp_modes(~x, weighted, epsilon = 1, seed = 1)
  expect_identical(privacy(fit)$max_weight, 2)
  open <- private_data(table, bounds = square, budget = dp_budget(1, 1e-5), adjacency = "add_remove", n_guess = 1500)
  expect_output(print(open), "private number of rows")
  expect_null(privacy(dp_modes(~x, open, epsilon = 1, seed = 1))$n_units)
})

test_that("budgets are checked and divided", {
  need_python()
  b <- dp_budget(2, 1e-6)
  parts <- split_budget(b, c(1, 3))
  expect_equal(vapply(parts, `[[`, 0, "epsilon"), c(0.5, 1.5))
  expect_error(dp_budget(1), class = "dpmode_InvalidBudget")
  expect_error(dp_budget(NA, 1e-6), "epsilon", class = "dpmode_InvalidArgument")
  expect_error(private_data(points_table(), bounds = square, budget = 1), class = "dpmode_InvalidBudget")
  expect_error(
    private_data(points_table(), bounds = square, budget = b, device = "gpu"), "cuda", class = "dpmode_InvalidArgument"
  )
  expect_output(print(b), "epsilon 2")
})
