# SPDX-License-Identifier: Apache-2.0
"""The graphs whose small forms are kept in the repository: of every family some, as different as they can be."""

CUT = (
    "resnet18", "mobilenet_v2", "densenet", "shufflenet_v2", "vit",
    "unet", "top_boxes", "kept_boxes",
    "bert", "deberta_v2", "gpt2", "llama", "t5_decoder_merged", "step_decoder", "clip",
    "wav2vec2", "tasnet", "word_spotter",
    "lstm_tagger_dynamic", "gru_tagger", "stream_step", "loop", "mlp",
    "resnet18_qdq_tensor", "mobilenet_v2_qdq_channel", "resnet18_qoperator",
    "bert_dynamic_int8", "llama_int4", "llama_int4_qdq", "resnet18_fp16",
    "forest_zipmap", "forest", "boosting", "xgboost", "lightgbm_zipmap", "scaled_pca_forest", "isolation_forest",
    "kmeans", "text_tfidf_zipmap", "text_counts", "columns",
)  # fmt: skip
