# SPDX-License-Identifier: Apache-2.0
"""A plan and its weights -> a model of the kernel library, which packs the weights; sessions of a process share it.

Law: of files with the same content, opened with the same options, there is one model at a time, however many sessions
and threads ask for it; the last that lets go of it frees it. The weights of a later session are not even read. What is
packed of a bundle's weights is not kept beside, but where several plans read the same weights. Where packed weights are
kept in a file, a model is one over the map of that file, whether this process wrote it or another did.
"""

import ctypes
import struct
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from nndeploy.errors import BundleError, UnavailableError
from nndeploy.files.file_content import is_file_map
from nndeploy.plugin.interface import BundledFiles
from nndeploy_native.native_memory import ALIGNMENT, ByteArray, address_of, aligned_copy
from nndeploy_native.packed_weights import PackedWeights, image_memory
from nndeploy_native.plan import PLAN_FILE, WEIGHTS_FILE

MESSAGE_BYTES = 400

_Key: TypeAlias = tuple[object, ...]


class Options(ctypes.Structure):
    """struct nnd_options."""

    _fields_ = (
        ("l2_bytes", ctypes.c_int64),
        ("buffer_bytes", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("gives_weights", ctypes.c_int64),
        ("plain_bytes", ctypes.c_int64),
        ("shares_all", ctypes.c_int64),
        ("ways", ctypes.c_char_p),
        ("num_ways", ctypes.c_int64),
        ("image", ctypes.c_void_p),
        ("image_bytes", ctypes.c_int64),
        ("image_is_packed", ctypes.c_int64),
        ("packs_all_late", ctypes.c_int64),
    )


class OpenedModel:
    """An opened plan; closed with the last who holds it."""

    def __init__(
        self,
        library: ctypes.CDLL,
        plan: bytes,
        weights: "memoryview | ByteArray",
        options: Options,
        image: "ByteArray | None" = None,
    ) -> None:
        """Opens a plan over weights, which are kept as long as it, or given away as `options` say; so is the image.

        Raises:
            UnavailableError: the plan is for another version of the library.
            BundleError: the library refuses it.
        """
        self.library, self._image = library, image
        given: ByteArray = np.frombuffer(weights, np.uint8)
        self._weights = aligned_copy(given) if address_of(given) % ALIGNMENT else given
        if image is not None:
            options.image, options.image_bytes = address_of(image), image.size
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        self.address: int = library.nnd_model_open(
            plan, len(plan), address_of(self._weights), len(given), ctypes.addressof(options), message, len(message)
        )
        if not self.address:
            said = f"{PLAN_FILE}: {message.value.decode(errors='replace')}"
            raise UnavailableError(said) if message.value.startswith(b"another library") else BundleError(said)

    def keep(self, packed: PackedWeights) -> bool:
        """Keeps what was packed into the image in a file; returns whether there is anything.

        Raises:
            InputOutputError: the file cannot be written.
        """
        used = int(self.library.nnd_model_image_bytes(self.address))
        if self._image is None or used <= 0:
            return False
        packed.keep(self._weights, self._image[:used])
        return True

    @property
    def num_steps(self) -> int:
        """How many steps there are."""
        return int(self.library.nnd_model_num_steps(self.address))

    @property
    def num_borders(self) -> tuple[int, int]:
        """How many inputs and outputs there are."""
        return (
            int(self.library.nnd_model_num_inputs(self.address)),
            int(self.library.nnd_model_num_outputs(self.address)),
        )

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self.library.nnd_model_close(self.address)


class _Place:
    """Where the one model of some content is, while somebody holds it or is about to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.model: weakref.ref[OpenedModel] | None = None


_places: "weakref.WeakValueDictionary[_Key, _Place]" = weakref.WeakValueDictionary()
_place_of: "weakref.WeakKeyDictionary[OpenedModel, _Place]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class Weights:
    """The weights of an artifact, which one plan may take for itself, or several read."""

    def __init__(self, files: Mapping[str, memoryview], *, is_shared: bool) -> None:
        self._files, self._is_shared = files, is_shared
        self._shared: memoryview | None = None

    @property
    def key(self) -> str | None:
        """What weights of the same content have alike; None where that is not known."""
        return self._files.sha256(WEIGHTS_FILE) if isinstance(self._files, BundledFiles) else None

    @property
    def are_given(self) -> bool:
        """Whether a plan may give their pages back: they are its own, or those of a file, which are read again."""
        if isinstance(self._files, BundledFiles):
            return not self._is_shared
        return is_file_map(self._files[WEIGHTS_FILE])

    def taken(self) -> memoryview:
        """Returns them for a plan, several plans the same view."""
        if not isinstance(self._files, BundledFiles):
            return self._files[WEIGHTS_FILE]
        if not self._is_shared:
            return self._files.taken(WEIGHTS_FILE)
        if self._shared is None:
            self._shared = self._files.taken(WEIGHTS_FILE)
        return self._shared


def opened_model(
    library: ctypes.CDLL, plan: bytes, weights: Weights, options: Options, ways: bytes = b"", shared_in: str = ""
) -> OpenedModel:
    """Returns the model of a plan: the one that is open, or a new one; `ways` as `ways_packed` returns them.

    `shared_in`: the folder of a cache in which packed weights are kept, and so shared with other processes; "" where
    they are not.

    Raises:
        BundleError: the library refuses it, or a file is damaged.
        InputOutputError: packed weights cannot be kept in that folder.
    """
    options.gives_weights = weights.are_given
    content, key_of_options = weights.key, bytes(options)
    options.ways, options.num_ways = ways, len(ways)
    if content is None:
        return OpenedModel(library, plan, weights.taken(), options)
    key = (library._name, plan, content, key_of_options, ways, shared_in)
    with _lock:
        place = _places.setdefault(key, _Place())
    with place.lock:  # whoever comes while it is made waits for it
        model = place.model() if place.model is not None else None
        if model is None:
            if shared_in and weights.are_given:
                how = struct.pack("<qq", options.l2_bytes, options.buffer_bytes)
                packed = PackedWeights(shared_in, library._name, plan, content, how, ways)
                model = _shared_model(library, plan, weights, options, packed)
            else:
                model = OpenedModel(library, plan, weights.taken(), options)
            place.model = weakref.ref(model)
            _place_of[model] = place  # which so is there as long as the model
    return model


def _shared_model(
    library: ctypes.CDLL, plan: bytes, weights: Weights, options: Options, packed: PackedWeights
) -> OpenedModel:
    """Returns a model over the map of a file of packed weights, which is written where there is none that fits."""
    if (found := _model_of_file(library, plan, options, packed)) is not None:
        return found
    plain = weights.taken()
    model = OpenedModel(library, plan, plain, options, image_memory(len(plain)))
    if not model.keep(packed):
        return model
    return _model_of_file(library, plan, options, packed) or model


def _model_of_file(library: ctypes.CDLL, plan: bytes, options: Options, packed: PackedWeights) -> OpenedModel | None:
    if (kept := packed.read()) is None:
        return None
    how = Options.from_buffer_copy(options)
    how.gives_weights, how.image_is_packed = 0, 1
    with suppress(BundleError):  # a file of the right name and key that does not fit is as if it were not there
        return OpenedModel(library, plan, kept.plain, how, kept.image)
    return None
