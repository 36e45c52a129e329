# SPDX-License-Identifier: Apache-2.0
"""Pictures in transformers: CLIP, DETR, SegFormer, a mask decoder like SAM's, DINO-like features."""

from pathlib import Path

import torch
import transformers as hf
from exporting import from_optimum, from_torch
from exporting.encoders import vocabulary
from exporting.feed import feed_of
from exporting.from_torch import settled
from exporting.graphs import Inputs, Scale, graph
from torch import Tensor, nn


@graph("clip", "picture and text", "optimum zero-shot-image-classification")
def _clip(path: Path, scale: Scale) -> Inputs:
    side = scale.of(128, 16)
    text = {
        "vocab_size": vocabulary(scale), "hidden_size": scale.of(128, 16), "intermediate_size": scale.of(512, 24),
        "num_hidden_layers": scale.of(3, 1), "num_attention_heads": scale.of(4, 2), "max_position_embeddings": 32,
        "eos_token_id": 2, "bos_token_id": 1,
    }  # fmt: skip
    vision = {
        "hidden_size": scale.of(128, 16), "intermediate_size": scale.of(512, 24), "image_size": side,
        "num_hidden_layers": scale.of(3, 1), "num_attention_heads": scale.of(4, 2), "patch_size": scale.of(16, 8),
    }  # fmt: skip
    config = hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=scale.of(64, 8))
    from_optimum.export(settled(hf.CLIPModel(config)), "zero-shot-image-classification", {"model.onnx": path})
    sizes = {
        "text_batch_size": 3, "image_batch_size": 1, "batch_size": 1, "sequence_length": scale.of(16, 6),
        "num_channels": 3, "height": side, "width": side,
    }  # fmt: skip
    return feed_of(path, sizes, tokens=vocabulary(scale))


class _Logits(nn.Module):
    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        found = self.model(pixel_values=pixel_values)
        return tuple(getattr(found, name) for name in self.names)


@graph("detr", "detector with queries", "torch script, dynamic batch")
def _detr(path: Path, scale: Scale) -> Inputs:
    config = hf.DetrConfig(
        use_timm_backbone=False, backbone=None, use_pretrained_backbone=False, d_model=scale.of(128, 16),
        backbone_config=hf.ResNetConfig(
            embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic",
            out_features=["stage4"]),
        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=256, decoder_ffn_dim=256, num_queries=20, num_labels=5,
    )  # fmt: skip
    image = torch.randn(1, 3, 192, 192)
    module = settled(_Logits(hf.DetrForObjectDetection(config), ("logits", "pred_boxes")), image)
    axes = {name: {0: "batch"} for name in ("pixel_values", "logits", "boxes")}
    example = {"pixel_values": image}
    return from_torch.export(module, example, path, dynamo=False, outputs=["logits", "boxes"], axes=axes)


@graph("segformer", "segmenter", "optimum semantic-segmentation, dynamic batch, channels, height, width")
def _segformer(path: Path, scale: Scale) -> Inputs:
    config = hf.SegformerConfig(
        hidden_sizes=scale.of([16, 32, 80, 128], [4, 8, 8, 8]), depths=scale.of([2, 2, 2, 2], [1, 1, 1, 1]),
        decoder_hidden_size=scale.of(128, 16), num_attention_heads=[1, 2, 4, 4], num_labels=6,
        sr_ratios=scale.of([8, 4, 2, 1], [4, 2, 2, 1]),
        mlp_ratios=scale.of([4, 4, 4, 4], [2, 2, 2, 2]),
    )  # fmt: skip
    side = scale.of(160, 64)
    model = settled(hf.SegformerForSemanticSegmentation(config), torch.randn(1, 3, side, side))
    from_optimum.export(model, "semantic-segmentation", {"model.onnx": path})
    return {"pixel_values": torch.randn(1, 3, side, side).numpy()}


@graph("vit_optimum", "classifier with attention",
       "optimum image-classification, dynamic batch, channels, height, width")  # fmt: skip
def _vit(path: Path, scale: Scale) -> Inputs:
    side = scale.of(128, 16)
    config = hf.ViTConfig(
        hidden_size=scale.of(192, 16), num_hidden_layers=scale.of(4, 1), num_attention_heads=scale.of(6, 2),
        intermediate_size=scale.of(768, 24), image_size=side, patch_size=scale.of(16, 8), num_labels=20,
    )  # fmt: skip
    from_optimum.export(settled(hf.ViTForImageClassification(config)), "image-classification", {"model.onnx": path})
    return {"pixel_values": torch.randn(1, 3, side, side).numpy()}


@graph("dinov2", "picture features", "torch dynamo, dynamic batch")
def _dinov2(path: Path, scale: Scale) -> Inputs:
    config = hf.Dinov2Config(
        hidden_size=128, num_hidden_layers=4, num_attention_heads=4, mlp_ratio=4, image_size=140, patch_size=14,
    )  # fmt: skip
    image = torch.randn(2, 3, 140, 140)
    module = settled(_Logits(hf.Dinov2Model(config), ("last_hidden_state", "pooler_output")))
    found = from_torch.export(
        module, {"pixel_values": image}, path, dynamo=True, outputs=["hidden", "pooled"],
        axes={"pixel_values": {0: "batch"}},
    )  # fmt: skip
    return {name: array[:1] for name, array in found.items()}


class _MaskDecoder(nn.Module):
    """Points to masks over the features of a picture: SAM's prompt encoder and decoder."""

    def __init__(self, sam: nn.Module) -> None:
        super().__init__()
        self.sam = sam

    def forward(self, image_embeddings: Tensor, input_points: Tensor, input_labels: Tensor) -> tuple[Tensor, Tensor]:
        found = self.sam(
            image_embeddings=image_embeddings, input_points=input_points, input_labels=input_labels,
            multimask_output=True,
        )  # fmt: skip
        return found.iou_scores, found.pred_masks


@graph("sam_decoder", "masks from points", "torch script, dynamic points")
def _sam(path: Path, scale: Scale) -> Inputs:
    hidden = scale.of(64, 16)
    config = hf.SamConfig(
        vision_config={
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 256, "patch_size": 16,
            "output_channels": hidden, "num_pos_feats": hidden // 2, "mlp_dim": 32, "global_attn_indexes": [0],
            "window_size": 4},
        prompt_encoder_config={"hidden_size": hidden, "image_size": 256, "patch_size": 16},
        mask_decoder_config={
            "hidden_size": hidden, "mlp_dim": scale.of(256, 32), "num_attention_heads": 2, "num_hidden_layers": 2,
            "iou_head_hidden_dim": hidden},
    )  # fmt: skip
    module = _MaskDecoder(settled(hf.SamModel(config)))
    example = {
        "image_embeddings": torch.randn(1, hidden, 16, 16),
        "input_points": torch.tensor([[[[40.0, 60.0], [120.0, 30.0]]]]),
        "input_labels": torch.tensor([[[1, 0]]]),
    }
    axes = {"input_points": {2: "points"}, "input_labels": {2: "points"}}
    return from_torch.export(module, example, path, dynamo=False, outputs=["scores", "masks"], axes=axes)
