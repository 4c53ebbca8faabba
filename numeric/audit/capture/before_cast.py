"""The half precision that code computed in, where it cast all that was recorded to float32."""

from dataclasses import replace

from otimes.numeric.audit.capture.collect import Capture
from otimes.numeric.audit.precision.mixed_precision import HALF
from otimes.numeric.model import Model
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, stored_as


def before_the_cast(capture: Capture, model: Model) -> Capture:
    """Return the capture of one activation in the half precision that it was computed in.

    Code in half precision often casts its logits to float32 at the end. It did so if they are all
    numbers of a type in half precision, and the weights are too.
    """
    arrays = [each.value for prompt in capture.prompts for each in prompt.places.values()]
    coarsest_first = sorted(HALF, key=lambda each: -UNIT_ROUNDOFF[each])
    for dtype in coarsest_first if capture.dtype == "float32" else ():
        every = (*arrays, *(model.part(name) for name in model.weights))
        if all((stored_as(each, dtype) == each).all() for each in every):
            note = f"precision: numbers of {dtype}, recorded in {capture.dtype}"
            dtypes = dict.fromkeys(capture.dtypes, dtype)
            return replace(capture, dtypes=dtypes, notes=(*capture.notes, note))
    return capture
