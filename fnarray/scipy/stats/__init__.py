"""Distributions and statistics under their names in `scipy.stats`.

A distribution is a module of functions of arrays, which promote to floats and broadcast. Those of
one variable are rows of two tables, `_continuous` and `_discrete`.
"""

from . import dirichlet as dirichlet
from . import multinomial as multinomial
from . import multivariate_normal as multivariate_normal
from ._continuous import beta as beta
from ._continuous import cauchy as cauchy
from ._continuous import chi2 as chi2
from ._continuous import expon as expon
from ._continuous import gamma as gamma
from ._continuous import gennorm as gennorm
from ._continuous import gumbel_l as gumbel_l
from ._continuous import gumbel_r as gumbel_r
from ._continuous import laplace as laplace
from ._continuous import logistic as logistic
from ._continuous import norm as norm
from ._continuous import pareto as pareto
from ._continuous import t as t
from ._continuous import truncnorm as truncnorm
from ._continuous import uniform as uniform
from ._continuous import vonmises as vonmises
from ._continuous import wrapcauchy as wrapcauchy
from ._discrete import bernoulli as bernoulli
from ._discrete import betabinom as betabinom
from ._discrete import binom as binom
from ._discrete import geom as geom
from ._discrete import nbinom as nbinom
from ._discrete import poisson as poisson
from ._kde import gaussian_kde as gaussian_kde
from ._order import mode as mode
from ._order import rankdata as rankdata
from ._order import sem as sem
