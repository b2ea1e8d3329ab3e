"""Clusters fitted to a sketch: derivatives, recovery, errors against repeated noise, and their number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pydpmode.errors import InvalidArgument
from pydpmode.numerics import cluster_sketch
from pydpmode.numerics.cluster_bandwidth import cluster_bandwidth
from pydpmode.numerics.cluster_candidates import candidates, nonnegative_weights
from pydpmode.numerics.cluster_fit import (
    Clusters,
    Prior,
    derivatives,
    evaluate,
    fading,
    images,
    normal_equations,
    refit,
    shape_basis,
)
from pydpmode.numerics.cluster_number import CLEAR, clearest, fit_unknown, stands
from pydpmode.numerics.cluster_pilot import pilot
from pydpmode.numerics.cluster_reseat import reseat, weighted_kmeans
from pydpmode.numerics.cluster_search import fit_known, losses
from pydpmode.numerics.cluster_set import fit_clusters, mode_starts, nearest_cluster, pilot_of
from pydpmode.numerics.cluster_sketch import ClusterSketch
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.feature_sums import feature_sum
from pydpmode.numerics.spectral_surfaces import spectral_surface


def make_surface(x: np.ndarray, h: float, noise: float, seed: int, pairs: int = 1200, half: float = 4.0):
    n, d = x.shape
    names, box = tuple(f"x{i}" for i in range(d)), (np.full(d, -half), np.full(d, half))
    design: Design = (
        LatticeDesign(names, *box, np.full(d, h))
        if d <= 3
        else RandomDesign(names, *box, np.full(d, h), n_pairs=pairs, frequency_seed=seed)
    )
    total, sums = feature_sum(design, np.ascontiguousarray(np.clip(x, -half, half).T))
    variance = noise**2 / (design.pair_weights * n**2)
    parts = np.random.default_rng(seed).normal(size=(2, design.n_pairs)) * np.sqrt(variance)
    return spectral_surface(design, sums / total + parts[0] + 1j * parts[1], variance, float(n))


def three(d: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    centres = 3.0 * np.vstack([np.zeros(d), np.eye(d)])[:3] - 1.0
    return centres[generator.integers(0, len(centres), n)] + 0.6 * generator.normal(size=(n, d)), centres


def some_fit(d: int = 2):
    x, centres = three(d, 2000, 1)
    sketch = ClusterSketch.of(make_surface(x, 0.8, 5.0, 1))
    sketch, middle, spread = pilot(sketch, sketch.widths / 6)
    prior = Prior(middle, spread, axis_freedom=0.3)
    at = sketch.from_columns(centres + 0.1)
    return sketch, prior, Clusters(np.array([0.3, 0.4, 0.3]), at, np.log(0.6 * spread))


@pytest.mark.parametrize(
    ("d", "own", "sheared"),
    [
        (2, False, False),
        (4, False, False),
        (2, True, False),
        (4, True, False),
        (2, False, True),
        (3, False, True),
    ],
)
def test_derivatives_are_those_of_the_objective(d: int, own: bool, sheared: bool) -> None:
    sketch, prior, clusters = some_fit(d)
    if sheared:
        prior = replace(prior, shear_freedom=0.3)
        clusters = replace(clusters, shear=0.4 * np.random.default_rng(0).normal(size=d * (d - 1) // 2))
    if own:
        clusters = clusters.shaped()
        odd = 0.2 * np.random.default_rng(0).normal(size=clusters.deviations.shape)
        clusters = replace(clusters, deviations=odd)
    fit, parts = evaluate(sketch, prior, clusters)
    jacobian = derivatives(sketch, clusters, parts)
    _, pull = normal_equations(jacobian, prior, clusters)
    slope = -(jacobian @ fit.residual.ravel()) + pull
    k = clusters.count

    def moved(position: int, step: float) -> float:
        shapes = clusters.deviations.T.ravel()
        plain = [clusters.weights, clusters.centres.T.ravel(), clusters.log_widths]
        theta = np.concatenate([*plain, clusters.shear, shapes])
        theta[position] += step
        ends = np.cumsum([k, k * d, d, clusters.shear.size])
        weights, centres, widths, shear, shapes = np.split(theta, ends)
        new = Clusters(weights, centres.reshape(d, k).T, widths, shapes.reshape(-1, k).T, shear)
        return evaluate(sketch, prior, new)[0].objective

    for position in range(slope.size):
        numeric = (moved(position, 1e-5) - moved(position, -1e-5)) / 2e-5
        assert slope[position] == pytest.approx(numeric, rel=1e-4, abs=1e-3 * np.abs(slope).max())


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("n", [2000, 20_000])
def test_long_clusters_across_the_axes_of_the_data_are_not_split(n: int, seed: int) -> None:
    """The axes of all the data are turned to those of the clusters, of which one is five times the other."""
    generator = np.random.default_rng(seed)
    label = generator.choice(3, n, p=[0.5, 0.3, 0.2])
    x = np.array([[0.0, -2.5], [5, 2.5], [-4, 2.5]])[label] + generator.normal(size=(n, 2)) * [1, 0.2]
    found = fit_clusters(make_surface(x, 1.0, 5.0, seed, half=9.0))
    assert found.count == 3
    np.testing.assert_allclose(found.shares, [0.5, 0.3, 0.2], atol=0.05)
    atol = 0.1 if n == 2000 else 0.03
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), [1, 0.2], atol=atol)
    assert (found.stability >= 0.8).all()


@pytest.mark.parametrize("count", [None, 3])
def test_a_cluster_beyond_where_the_data_seem_to_lie_is_found(count: int | None) -> None:
    """One Gaussian for all of these has its mean and spread where two of the three are."""
    generator = np.random.default_rng(1)
    label = generator.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    x = np.array([[-4.5, 0.0], [-0.5, 5], [3.5, -4]])[label] + generator.normal(size=(20_000, 2)) * [0.8, 1]
    found = fit_clusters(make_surface(x, 1.0, 5.0, 1, half=8.0), count)
    assert found.count == 3
    np.testing.assert_allclose(found.centres, [[-4.5, 0.0], [-0.5, 5], [3.5, -4]], atol=0.2)
    assert (found.stability >= 0.8).all()


def test_a_refit_never_rises_and_finds_the_centres() -> None:
    sketch, prior, clusters = some_fit()
    before = evaluate(sketch, prior, clusters)[0]
    after = refit(sketch, prior, clusters)
    assert after.objective < before.objective
    truth = three(2, 10, 1)[1]
    assert np.abs(sketch.to_columns(after.clusters.centres) - truth).max() < 0.15


def test_a_cropped_sketch_leaves_out_what_no_cluster_reaches() -> None:
    sketch, _, clusters = some_fit()
    assert sketch.cropped(np.full(2, 1e-3)) is sketch
    wide = np.full(2, 6.0)
    cropped = sketch.cropped(wide)
    assert 0 < cropped.root.size < 0.5 * sketch.root.size
    clusters = replace(clusters, log_widths=np.log(wide))
    at = (images(one, clusters.centres, fading(one, clusters)) for one in (sketch, cropped))
    whole, rest = ((image**2).sum(axis=(1, 2)) for image in at)
    np.testing.assert_allclose(rest, whole, rtol=1e-10)


def test_a_sketch_of_a_fine_lattice_keeps_its_lowest_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    surface = make_surface(three(2, 2000, 1)[0], 0.8, 5.0, 2)
    whole = ClusterSketch.of(surface)
    monkeypatch.setattr(cluster_sketch, "MOST_FREQUENCIES", whole.root.size // 3)
    few = ClusterSketch.of(surface)
    assert few.root.size == whole.root.size // 3
    assert few.squared_norms.max() <= np.sort(whole.squared_norms)[few.root.size]


@pytest.mark.parametrize("scale", [1e-6, 1e-60, 1e-200, 0.0])
def test_clusters_that_leave_no_image_have_no_evidence(scale: float) -> None:
    sketch, prior, clusters = some_fit()
    faint = replace(sketch, root=sketch.root * scale)
    fit, _ = evaluate(faint, prior, clusters)
    assert np.all(np.sqrt(2 * losses(faint, fit)) <= 1e-3)
    again = refit(faint, prior, clusters).clusters
    assert np.isfinite(again.centres).all()
    assert np.all(again.weights <= 10)


def test_a_refit_of_no_clusters_leaves_the_sketch() -> None:
    sketch, prior, clusters = some_fit()
    none = refit(sketch, prior, clusters.only(np.zeros(3, dtype=np.bool_)))
    assert none.clusters.count == 0
    assert none.residual == pytest.approx(sketch.target)


def test_the_image_of_a_cluster_is_the_mean_of_its_records() -> None:
    sketch, _, _ = some_fit(4)
    middle = sketch.from_columns(np.zeros((1, 4)))
    x = np.random.default_rng(0).normal(size=(20_000, 4)) * 0.5
    z = sketch.from_columns(x)
    phase = z[:, :] @ sketch.frequencies[:, :50]
    mean = np.cos(phase).mean(axis=0) * sketch.root[:50]
    one = Clusters(np.ones(1), middle, np.log(np.full(4, 0.5 / sketch.unit[0])))
    image = images(sketch, middle, fading(sketch, one))[0, 0, :50]
    assert np.abs(mean - image).max() < 0.03 * sketch.root.max()


def test_turning_and_back() -> None:
    sketch, _, _ = some_fit(4)
    points = np.random.default_rng(0).uniform(-4, 4, (5, 4))
    assert sketch.to_columns(sketch.from_columns(points)) == pytest.approx(points)
    outside = sketch.to_columns(sketch.inside(sketch.from_columns(points * 3)))
    assert outside == pytest.approx(np.clip(points * 3, -4, 4))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_known_and_unknown_number(d: int) -> None:
    x, centres = three(d, 3000, d)
    surface = make_surface(x, 0.8, 5.0, d)
    known = fit_clusters(surface, len(centres))
    distance = np.linalg.norm(known.centres[:, None] - centres, axis=2).min(axis=0)
    assert distance.max() < 0.2
    assert known.shares.sum() == pytest.approx(1)
    assert (np.diff(known.shares) <= 0).all()
    assert fit_clusters(surface).count == len(centres)


def test_errors_against_repeated_noise_and_samples() -> None:
    """Fresh rows and fresh noise: squared errors over stated variances average to about one."""
    ratios, shares = [], []
    for seed in range(25):
        x, centres = three(2, 1500, 100 + seed)
        found = fit_clusters(make_surface(x, 0.8, 8.0, seed), 3)
        order = np.linalg.norm(found.centres[:, None] - centres, axis=2).argmin(axis=1)
        stated = np.einsum("kii->ki", found.covariance_privacy + found.covariance_sampling)
        ratios.append((found.centres - centres[order]) ** 2 / stated)
        variance = found.share_privacy**2 + found.share_sampling**2
        shares.append((found.shares - 1 / 3) ** 2 / variance)
    assert 0.7 < np.mean(ratios) < 1.4
    assert 0.6 < np.mean(shares) < 1.5


def crossed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two clusters of one volume that are long in different directions, labels and covariances."""
    generator = np.random.default_rng(seed)
    sds = np.array([[0.5, 1.4, 0.5, 0.5], [0.5, 0.5, 0.5, 1.4]])
    labels = generator.integers(0, 2, n)
    centres = np.array([[-0.9, 0, 0, 0], [0.9, 0, 0, 0]])
    return centres[labels] + sds[labels] * generator.normal(size=(n, 4)), labels, sds**2


def test_the_basis_of_shapes_keeps_the_volume() -> None:
    for d in range(1, 9):
        basis = shape_basis(d)
        assert len(basis) == d - 1 + d * (d - 1) // 2
        assert np.abs(np.trace(basis, axis1=1, axis2=2)).max(initial=0.0) < 1e-12
        gram = np.tensordot(basis, basis, axes=([1, 2], [1, 2]))
        assert gram == pytest.approx(np.eye(len(basis)), abs=1e-12)


def test_own_shapes_are_found_and_distances_follow_them() -> None:
    x, labels, variances = crossed(8000, 1)
    found = fit_clusters(make_surface(x, 1.2, 3.0, 1), 2)
    order = np.argsort(found.centres[:, 0])
    assert np.abs(found.centres[order][:, 0] - [-0.9, 0.9]).max() < 0.15
    fitted = np.diagonal(found.shapes[order], axis1=1, axis2=2)
    assert fitted == pytest.approx(variances, rel=0.35)
    assert found.covariance == pytest.approx(np.tensordot(found.shares, found.shapes, axes=1))
    scale = np.full(4, 0.7)
    own = np.mean(np.argsort(order)[nearest_cluster(found, x, scale)] == labels)
    common = replace(found, shapes=np.full_like(found.shapes, np.nan))
    plain = np.mean(np.argsort(order)[nearest_cluster(common, x, scale)] == labels)
    assert own > plain + 0.01


def test_shapes_stay_common_where_noise_hides_them() -> None:
    x, _, _ = crossed(2000, 2)
    found = fit_clusters(make_surface(x, 1.2, 200.0, 2), 2)
    assert found.shapes[0] == pytest.approx(found.shapes[1], abs=0.1 * np.trace(found.covariance) / 4)
    few = fit_clusters(make_surface(x[:, :3], 1.2, 3.0, 2), 2)
    assert np.isnan(few.shapes).all()


def test_errors_of_centres_with_own_shapes() -> None:
    ratios = []
    for seed in range(10):
        x, _, _ = crossed(2500, 100 + seed)
        found = fit_clusters(make_surface(x, 1.2, 6.0, seed, pairs=400), 2)
        truth = np.array([[-0.9, 0, 0, 0], [0.9, 0, 0, 0]])[np.argsort(np.argsort(found.centres[:, 0]))]
        stated = np.einsum("kii->ki", found.covariance_privacy + found.covariance_sampling)
        ratios.append((found.centres - truth) ** 2 / stated)
    assert 0.6 < np.mean(ratios) < 1.5


def test_pure_noise_is_one_cluster_with_no_false_company() -> None:
    x = np.random.default_rng(3).normal(size=(2000, 3)) @ np.array([[1, 0.8, 0], [0, 0.5, 0], [0, 0, 1.0]])
    counts = [fit_clusters(make_surface(x, 1.0, 6.0, seed)).count for seed in range(8)]
    assert counts.count(1) >= 7


def piled(n: int, seed: int, share: float = 0.05) -> np.ndarray:
    """Return two Gaussians of unit variance, a share of the second column set to its lower bound."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(2 * n, 2)) + np.repeat([[-2.0, -2.0], [2.0, 2.0]], n, axis=0)
    x[generator.random(2 * n) < share, 1] = -5.0
    return x


@pytest.mark.parametrize("seed", range(4))
def test_values_piled_at_a_bound_are_a_few_pieces_that_all_stand(seed: int) -> None:
    found = fit_clusters(make_surface(piled(6000, seed), 0.45, 6.0, seed, half=5.0))
    assert 2 <= found.count <= 6
    assert found.significance.min() >= CLEAR
    assert (found.share_privacy < found.shares).all()
    for centre in ([-2, -2], [2, 2]):
        assert np.linalg.norm(found.centres - centre, axis=1).min() < 0.6
    plain = make_surface(piled(6000, seed, 0.0), 0.45, 6.0, seed, half=5.0)
    assert fit_clusters(plain).count == 2


def test_a_cluster_that_says_nothing_does_not_stand() -> None:
    sketch, prior, clusters = some_fit()
    fit = refit(sketch, prior, clusters)
    assert stands(sketch, fit)
    twice = Clusters(
        np.append(fit.clusters.weights, 1e-4),
        np.vstack([fit.clusters.centres, fit.clusters.centres[:1]]),
        fit.clusters.log_widths,
    )
    assert not stands(sketch, evaluate(sketch, prior, twice)[0])


def test_the_number_is_limited_and_a_place_can_be_given_up() -> None:
    x, _ = three(2, 3000, 2)
    surface = make_surface(x, 0.8, 5.0, 2)
    sketch, middle, spread = pilot_of(surface)
    prior = Prior(middle, spread, axis_freedom=0.2)
    found = candidates(surface, sketch, prior)
    fit, evidence, threshold = fit_unknown(sketch, prior, found, 0.03, most=2)
    assert fit.clusters.count == 2
    assert evidence > threshold
    _, place, _ = clearest(sketch, found, fit)
    other, elsewhere, _ = clearest(sketch, found, fit, place[None])
    wide = np.exp(fit.clusters.log_widths)
    assert np.linalg.norm((elsewhere - place) / wide) >= 2
    assert other < evidence


def test_the_pilot_finds_offset_and_scale() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 2)) * [0.4, 1.6] + [1.5, -0.5]
    sketch = ClusterSketch.of(make_surface(x, 0.8, 5.0, 1))
    turned, middle, spread = pilot(sketch, sketch.widths / 6)
    assert turned.to_columns(middle[None])[0] == pytest.approx([1.5, -0.5], abs=0.2)
    assert spread.max() / spread.min() > 1.5
    apart = np.repeat([[-2.5, -2.5], [2.5, 2.5]], 1000, axis=0)
    both = fit_clusters(make_surface(apart, 0.8, 5.0, 1), 2)
    assert np.sort(both.centres[:, 0]) == pytest.approx([-2.5, 2.5], abs=0.1)


def test_starts_for_modes_only_where_a_grid_cannot_go() -> None:
    x, centres = three(4, 2000, 1)
    starts = mode_starts(make_surface(x, 0.8, 5.0, 1), 3)
    assert starts is not None
    assert np.linalg.norm(starts[:, None] - centres, axis=2).min(axis=0).max() < 0.5
    assert mode_starts(make_surface(x[:, :2], 0.8, 5.0, 1), 3) is None


def test_what_has_no_coefficients_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="centres='modes'"):
        ClusterSketch.of(object())
    x, _ = three(4, 500, 1)
    marginal = make_surface(x, 0.8, 5.0, 1).marginal(["x0", "x1"])
    with pytest.raises(InvalidArgument, match="marginal"):
        ClusterSketch.of(marginal)


def test_the_bandwidth_rule() -> None:
    widths = np.array([6.0, 12.0, 6.0, 6.0])
    h = cluster_bandwidth(widths, n=6000, noise_scale=10.0, n_clusters=16)
    assert h == pytest.approx(widths / 6 * 0.88 * 0.5)
    assert (cluster_bandwidth(widths, n=60, noise_scale=10.0, n_clusters=16) > h).all()
    assert cluster_bandwidth(widths, n=2, noise_scale=1e9, n_clusters=1) == pytest.approx(widths / 4)
    eight = cluster_bandwidth(widths, n=6000, noise_scale=10.0, n_clusters=8)
    assert cluster_bandwidth(widths, n=6000, noise_scale=10.0, n_clusters=None) == pytest.approx(eight)


def test_nonnegative_weights() -> None:
    rows = np.array([[1.0, 0, 0], [1.0, 1.0, 0]])
    assert nonnegative_weights(rows, np.array([2.0, 1.0, 5.0])) == pytest.approx([1, 1], abs=1e-4)
    assert nonnegative_weights(rows, np.array([1.0, -2.0, 0.0])) == pytest.approx([1, 0], abs=1e-4)


def skewed(d: int, k: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters near the walls of the box, of unequal shares and widths, some half normal."""
    generator = np.random.default_rng(seed)
    shares = np.maximum(generator.dirichlet(np.ones(k)), 0.03)
    label = generator.choice(k, n, p=shares / shares.sum())
    low = generator.random((k, d)) < 0.5
    middle = np.where(low, generator.uniform(0, 0.3, (k, d)), generator.uniform(0.6, 0.9, (k, d)))
    sd, noise = generator.uniform(0.03, 0.14, (k, d)), generator.normal(size=(n, d))
    half = (generator.random((k, d)) < 0.4)[label]
    x = middle[label] + sd[label] * np.where(half, 1.3 * np.abs(noise), noise)
    x = 8 * np.clip(x, 0, 1) - 4
    return x, np.array([x[label == j].mean(axis=0) for j in range(k)])


@pytest.mark.parametrize(("d", "k", "seed"), [(3, 4, 0), (5, 4, 8)])
def test_small_clusters_far_away_are_not_passed_over(d: int, k: int, seed: int) -> None:
    x, centres = skewed(d, k, 10_000, seed)
    surface = make_surface(x, 0.8, 4.0, 1, pairs=1500)
    sketch, middle, spread = pilot_of(surface)
    prior = Prior(middle, spread, axis_freedom=0.2)
    found = candidates(surface, sketch, prior)
    best = fit_known(sketch, prior, found, k)
    assert off(centres, sketch.to_columns(best.clusters.centres)).max() > 2
    told = fit_clusters(surface, k)
    assert off(centres, told.centres).max() < 1
    assert told.stability.min() >= 0.8


def test_a_fit_that_leaves_nothing_far_off_stays() -> None:
    x, _ = three(4, 20_000, 2)
    surface = make_surface(x, 0.8, 4.0, 2)
    sketch, middle, spread = pilot_of(surface)
    prior = Prior(middle, spread, axis_freedom=0.2)
    found = candidates(surface, sketch, prior)
    fit = fit_known(sketch, prior, found, 3)
    assert reseat(sketch, prior, found, fit) == (fit, found)


def test_kmeans_of_weighted_points() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0], [9.0, 10.0], [20.0, 0.0]])
    masses = np.array([3.0, 1.0, 1.0, 1.0, 2.0])
    centres, least = weighted_kmeans(points, masses, 3)
    assert sorted(centres.tolist()) == [[0.25, 0.0], [9.0, 9.5], [20.0, 0.0]]
    assert least == pytest.approx(3 * 0.25**2 + 0.75**2 + 2 * 0.5**2)


def off(centres: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.sqrt(((centres[:, None] - found) ** 2).sum(axis=2)).min(axis=1)
