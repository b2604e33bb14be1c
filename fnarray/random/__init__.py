"""Random numbers from explicit keys, named as in ``jax.random`` and equal to it.

The same key gives the same numbers, whatever runs them. Split keys; never use one twice.
"""

from . import _key_refs as _key_refs
from ._counts import binomial as binomial
from ._counts import multinomial as multinomial
from ._counts import poisson as poisson
from ._gamma import ball as ball
from ._gamma import beta as beta
from ._gamma import chisquare as chisquare
from ._gamma import dirichlet as dirichlet
from ._gamma import f as f
from ._gamma import gamma as gamma
from ._gamma import generalized_normal as generalized_normal
from ._gamma import loggamma as loggamma
from ._gamma import random_gamma_p as random_gamma_p
from ._gamma import t as t
from ._keys import PRNGKey as PRNGKey
from ._keys import PRNGKeyArray as PRNGKeyArray
from ._keys import clone as clone
from ._keys import fold_in as fold_in
from ._keys import key as key
from ._keys import key_data as key_data
from ._keys import key_dtype as key_dtype
from ._keys import key_impl as key_impl
from ._keys import split as split
from ._keys import wrap_key_data as wrap_key_data
from ._matrices import multivariate_normal as multivariate_normal
from ._matrices import orthogonal as orthogonal
from ._order import categorical as categorical
from ._order import choice as choice
from ._order import permutation as permutation
from ._transformed import cauchy as cauchy
from ._transformed import double_sided_maxwell as double_sided_maxwell
from ._transformed import exponential as exponential
from ._transformed import geometric as geometric
from ._transformed import gumbel as gumbel
from ._transformed import laplace as laplace
from ._transformed import logistic as logistic
from ._transformed import lognormal as lognormal
from ._transformed import maxwell as maxwell
from ._transformed import pareto as pareto
from ._transformed import rayleigh as rayleigh
from ._transformed import triangular as triangular
from ._transformed import truncated_normal as truncated_normal
from ._transformed import wald as wald
from ._transformed import weibull_min as weibull_min
from ._uniform import bernoulli as bernoulli
from ._uniform import bits as bits
from ._uniform import normal as normal
from ._uniform import rademacher as rademacher
from ._uniform import randint as randint
from ._uniform import uniform as uniform
