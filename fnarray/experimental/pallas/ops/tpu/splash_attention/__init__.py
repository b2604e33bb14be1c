"""``splash_attention``: its two modules, which libraries import with their others.

They use them on TPUs alone (Keras' attention among them), and what computes is not there.
"""

from . import splash_attention_kernel as splash_attention_kernel
from . import splash_attention_mask as splash_attention_mask
