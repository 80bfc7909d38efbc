(** * The theorems, by item of the paper

    Each definition below is another name of a theorem. [Errata.v] refutes wrong statements of the
    paper. *)

From Locum Require Export Rasp Reasoning Matrices Softmax Sums Products Masks Lines Scatter Universal Paper.
From Locum Require Export Heads Tiled Norm Activations Encoder Sequences Sorting GroupSort Maxout.
From Locum Require Export Inversion Hierarchy Kinds Encoding Rationals Agreement Errata.

(** ** The executable semantics over the rationals agrees with [eval] ([Agreement.v]) *)
Definition semantics_agree := @evalQ_agrees.
Definition results_agree := @runQ_agrees.

(** ** Proposition 1D: arrays as sequences ([Sequences.v]); matrices as views ([Matrices.v]) *)
Definition proposition_1D := prop_bijection.

(** ** Proposition AHAT: sums from means ([Sums.v], [Sequences.v]) *)
Definition proposition_AHAT := @summed_correct.
Definition proposition_AHAT_known_count := @summed_by_correct.
Definition row_sums_of_a_matrix := @row_sums_correct.
Definition row_means_of_a_matrix := @row_means_correct.
Definition sum_of_a_matrix := @all_sum_correct.

(** ** Lemma transposition: the paper's head ([Sums.v]), a view ([Matrices.v]) *)
Definition lemma_transposition := @transpose_correct.
Definition lemma_transposition_view := @transposed_correct.

(** ** Lemma softmax: the paper's heads ([Paper.v]); one head for all rows ([Masks.v]) *)
Definition lemma_softmax := @paper_softmax_correct.
Definition lemma_softmax_plain := @plain_softmax_correct.
Definition lemma_softmax_stable := @stable_softmax_correct.
Definition lemma_softmax_any_base := @unmasked_softmax_correct.
Definition lemma_softmax_causal := @causal_softmax_correct.
Definition lemma_softmax_first_columns := @columns_softmax_correct.
Definition lemma_softmax_masked := @masked_softmax_correct.

(** ** Lemma matmul, in four recipes *)
Definition lemma_matmul := @paper_matmul_correct.
Definition lemma_matmul_fetch := @matmul_correct.
Definition lemma_matmul_tiled := @best_tiled_matmul_correct.
Definition lemma_matmul_scatter := @scatter_matmul_correct.

(** ** Listing 4 and the remark on activations ([Activations.v], [Sorting.v], [Maxout.v]) *)
Definition activations := @activation_correct.
Definition activations_through_maxmin := @through_maxmin_correct.
Definition activation_maxout := @maxout_correct.

(** ** Lemma MaxMin, GroupSort ([Sorting.v], [GroupSort.v]) *)
Definition lemma_maxmin := @maxmin_correct.
Definition lemma_maxmin_listing := @flipping_correct.
Definition lemma_groupsort := @groupsort_correct.

(** ** Lemma multi-head ([Heads.v]), and its snippets identify and shift ([Sequences.v]) *)
Definition lemma_multihead := @multihead_correct.
Definition lemma_multihead_transposition := @multihead_transpose_correct.
Definition lemma_multihead_matmul := @multihead_matmul_correct.
Definition identify_a_part := @identify_correct.
Definition shift_a_sequence := @shift_correct.
Definition shift_a_part := @rotate_correct.

(** ** Lemma inversion, order 3 ([Inversion.v]) *)
Definition lemma_cofactor := @cofactor_correct.
Definition lemma_determinant := @determinant_correct.
Definition lemma_determinant_listing := @paper_determinant_correct.
Definition lemma_inversion := @inverse_correct.

(** ** Match₂ and k-PARITY, as corrected ([Sequences.v]) *)
Definition match2_decides := @match2_correct.
Definition k_parity_decides := @k_parity_correct.

(** ** Parts of an encoder ([Norm.v], [Sums.v]) *)
Definition layer_norm_of_rows := @layer_norm_correct.
Definition residual_sum := @add_correct.
Definition bias_of_rows := @broadcast_row_correct.

(** ** Theorem 1 and its corollaries over ⟨T, X⟩ ([Encoding.v]) *)
Definition theorem_1_closed := @theorem_1.
Definition theorem_1_closed_by_recipe := @every_recipe_simulates.
Definition corollary_encoder_closed := @encoder_computes.
Definition theorem_H_heads_closed := @heads_U_computes.
Definition corollary_H_heads_closed := @corollary_H_heads.
Definition corollary_hierarchy_closed := @masked_U_computes.

(** ** The same statements for all tokens that contain T and X, and the other kinds of attention *)
Definition theorem_1_fetch := @U_simulates.
Definition theorem_1_plain := @plain_U_simulates.
Definition theorem_1_paper := @paper_U_simulates.
Definition theorem_1_tiled := @tiled_U_simulates.
Definition corollary_encoder := @encoder_simulates.
Definition corollary_encoder_with_norms := @layer_of_one_head_simulates.
Definition theorem_H_heads := @heads_U_simulates.
Definition theorem_H_heads_projected := @projected_U_simulates.
Definition corollary_H_heads_program := @encoder_of_heads_simulates.
Definition corollary_H_heads_with_norms := @layer_of_heads_simulates.
Definition remark_linformer := @linformer_U_simulates.
Definition remark_linear_attention := @linear_U_simulates.
Definition remark_linear_attention_elu := @elu_U_simulates.
Definition remark_performer := @performer_U_simulates.
Definition corollary_hierarchy := @hierarchy_simulates.
Definition causal_attention := @causal_U_simulates.
