# needs: torch
"""A kernel as a PyTorch operator with a gradient: the softplus of a tensor, trained through."""

import torch

import tack
from tack.interop.torch import operator


@tack.kernel
def softplus_kernel(out, x):
    for i in range(x.shape[0]):
        out[i] = max(x[i], 0.0) + tack.log1p(tack.exp(-abs(x[i])))


@tack.kernel
def slope_kernel(out, grad, x):
    for i in range(x.shape[0]):
        out[i] = grad[i] / (1.0 + tack.exp(-x[i]))


softplus = operator(softplus_kernel, "(Tensor x) -> Tensor", name="example::softplus")
slope = operator(slope_kernel, "(Tensor grad, Tensor x) -> Tensor", name="example::softplus_slope")


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


softplus.register_autograd(lambda ctx, grad: slope(grad.contiguous(), *ctx.saved_tensors), setup_context=keep)

x = torch.linspace(-3.0, 3.0, 7, dtype=torch.float64, requires_grad=True)
assert torch.allclose(softplus(x), torch.nn.functional.softplus(x))
assert torch.autograd.gradcheck(softplus, (x,))

weight = torch.zeros(7, dtype=torch.float64, requires_grad=True)
target = torch.linspace(0.5, 2.0, 7, dtype=torch.float64)
optimizer = torch.optim.Adam([weight], lr=0.1)
for _ in range(300):
    optimizer.zero_grad()
    loss = ((softplus(weight) - target) ** 2).sum()
    loss.backward()
    optimizer.step()
assert loss < 1e-6
print(f"trained through the kernel: loss {loss.item():.1e}")
