"""Jraph: a graph network trained to tell cycles from paths, on a batch of padded graphs."""

import sys

import jax
import jax.numpy as jnp
import jraph
import numpy as np


def ring(n, closed):
    senders = np.arange(n if closed else n - 1)
    receivers = (senders + 1) % n
    return jraph.GraphsTuple(
        nodes=np.ones((n, 2), np.float32) * np.arange(n)[:, None] / n,
        edges=np.ones((len(senders), 1), np.float32),
        senders=senders,
        receivers=receivers,
        globals=np.zeros((1, 1), np.float32),
        n_node=np.array([n]),
        n_edge=np.array([len(senders)]),
    )


def main():
    graphs = [ring(n, closed) for n in (3, 4, 5) for closed in (True, False)]
    batch = jraph.pad_with_graphs(jraph.batch(graphs), 32, 32, 8)
    labels = jnp.array([1, 0] * 3 + [0, 0])
    mask = jraph.get_graph_padding_mask(batch)
    k1, k2, k3 = jax.random.split(jax.random.key(0), 3)
    params = {
        "edge": 0.5 * jax.random.normal(k1, (6, 8)),
        "node": 0.5 * jax.random.normal(k2, (2 + 8 + 8 + 1, 8)),
        "global": 0.5 * jax.random.normal(k3, (8 + 8 + 1, 2)),
    }

    def net(params, graph):
        gn = jraph.GraphNetwork(
            update_edge_fn=lambda e, s, r, g: jnp.tanh(
                jnp.concatenate([e, s, r, g], -1) @ params["edge"]
            ),
            update_node_fn=lambda n, s, r, g: jnp.tanh(
                jnp.concatenate([n, s, r, g], -1) @ params["node"]
            ),
            update_global_fn=lambda n, e, g: jnp.concatenate([n, e, g], -1) @ params["global"],
        )
        return gn(graph).globals

    @jax.jit
    def step(params, graph):
        def loss(params):
            logp = jax.nn.log_softmax(net(params, graph))
            return -jnp.sum(mask * logp[jnp.arange(8), labels]) / mask.sum()

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    values = []
    for _ in range(15):
        params, value = step(params, batch)
        values.append(value)
    nodes = jnp.arange(10.0)
    segments = jnp.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3])
    return {
        "values": jnp.stack(values),
        "logits": net(params, batch),
        "softmax": jraph.segment_softmax(nodes, segments, 4),
        "mean": jraph.segment_mean(nodes, segments, 4),
        "unbatched": jraph.unpad_with_graphs(batch).n_node,
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
