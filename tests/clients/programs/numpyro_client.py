"""NumPyro: a regression sampled by NUTS, fitted by SVI, and predictive draws."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, log_likelihood


def model(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    level = numpyro.sample("level", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(level + slope * x, spread), obs=y)


def main():
    numpyro.enable_x64()  # chains part ways where the last bits differ
    x = jnp.linspace(-1, 1, 30)
    y = 0.5 + 1.5 * x + 0.3 * jax.random.normal(jax.random.key(0), (30,))
    mcmc = MCMC(NUTS(model), num_warmup=30, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.key(1), x, y)
    samples = mcmc.get_samples()
    guide = autoguide.AutoNormal(model)
    svi = SVI(model, guide, numpyro.optim.optax_to_numpyro(optax.adam(0.02)), Trace_ELBO())
    fitted = svi.run(jax.random.key(2), 100, x, y, progress_bar=False)
    prior = Predictive(model, num_samples=5)(jax.random.key(3), x)
    posterior = Predictive(model, samples)(jax.random.key(4), x)
    draws = {
        "gamma": dist.Gamma(2.0, 3.0),
        "beta": dist.Beta(2.0, 3.0),
        "student": dist.StudentT(4.0),
        "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
        "categorical": dist.Categorical(logits=jnp.array([0.1, 0.5, 1.0])),
        "poisson": dist.Poisson(4.0),
        "mvn": dist.MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.3], [0.3, 2.0]])),
        "lkj": dist.LKJCholesky(3, 1.5),
    }
    found = {
        "slope_mean": samples["slope"][:3],
        "elbo": fitted.losses,
        "loc": fitted.params["slope_auto_loc"],
        "prior_y": prior["y"],
        "posterior_y": posterior["y"][:2],
        "log_likelihood": log_likelihood(model, prior, x, y)["y"],
    }
    for name, d in draws.items():
        value = d.sample(jax.random.key(5), (4,))
        found[name] = value
        found[f"{name}_log_prob"] = d.log_prob(value)
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
