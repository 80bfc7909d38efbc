(** * The executable semantics agrees with [eval]

    The theorem [evalQ_agrees]: if [evalQ] of [Rationals.v] returns a value, [eval] has the same
    value. If [evalQ] returns that a program has no value, [eval] has no value. [runQ_agrees] is the
    corollary for a closed program on a list of tokens. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith QArith Qreals Qround Qpower.
Import ListNotations.
From Locum Require Import Rasp Reasoning Rationals.
Open Scope R_scope.

Definition inject (v : valueQ) : value := match v with NumQ x => Num (Q2R x) | BoolQ b => Bool b end.

(** The relation between an outcome and a result over the reals. *)
Definition agrees {A B} (same : A -> B -> Prop) (o : outcome A) (r : option B) : Prop :=
  match o with Value a => exists b, r = Some b /\ same a b | NoValue => r = None | Unknown => True end.
Definition same_value (v : valueQ) (w : value) : Prop := w = inject v.
Definition same_sequence N (v : nat -> valueQ) (w : nat -> value) : Prop :=
  forall q, (q < N)%nat -> w q = inject (v q).
Definition same_pattern N (x y : nat -> nat -> bool) : Prop :=
  forall q k, (q < N)%nat -> (k < N)%nat -> y q k = x q k.

Lemma Q2R_red x : Q2R (Qred x) = Q2R x.
Proof. apply Qeq_eqR, Qred_correct. Qed.
Lemma Q2R_integer z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z; simpl. lra. Qed.
Lemma Q2R_nat n : Q2R (inject_Z (Z.of_nat n)) = INR n.
Proof. now rewrite Q2R_integer, <- INR_IZR_INZ. Qed.
Lemma Q2R_0 : Q2R 0 = 0. Proof. exact (Q2R_integer 0). Qed.
Lemma Q2R_1 : Q2R 1 = 1. Proof. exact (Q2R_integer 1). Qed.

Lemma number_inject v : number (inject v) = Q2R (numberQ v).
Proof. destruct v as [x|[|]]; simpl; auto using Q2R_0, Q2R_1. Qed.

Lemma equal_spec a b : Qeq_bool a b = if Req_EM_T (Q2R a) (Q2R b) then true else false.
Proof.
  destruct (Req_EM_T (Q2R a) (Q2R b)) as [E|E]; [now apply Qeq_bool_iff, eqR_Qeq|].
  destruct (Qeq_bool a b) eqn:D; [|reflexivity]. now apply Qeq_bool_iff, Qeq_eqR in D.
Qed.
Lemma at_most_spec a b : Qle_bool a b = if Rle_dec (Q2R a) (Q2R b) then true else false.
Proof.
  destruct (Rle_dec (Q2R a) (Q2R b)) as [E|E]; [now apply Qle_bool_iff, Rle_Qle|].
  destruct (Qle_bool a b) eqn:D; [|reflexivity]. now apply Qle_bool_iff, Qle_Rle in D.
Qed.
Lemma less_spec a b : lessQ a b = if Rlt_dec (Q2R a) (Q2R b) then true else false.
Proof.
  unfold lessQ. rewrite at_most_spec. destruct (Rle_dec (Q2R b) (Q2R a)), (Rlt_dec (Q2R a) (Q2R b)); auto; lra.
Qed.
Lemma compare_inject p a b : compare p (Q2R a) (Q2R b) = compareQ p a b.
Proof.
  destruct p; simpl; rewrite ?equal_spec, ?at_most_spec, ?less_spec.
  - reflexivity.
  - now destruct (Req_EM_T (Q2R a) (Q2R b)).
  - reflexivity.
  - reflexivity.
  - destruct (Rgt_dec (Q2R a) (Q2R b)), (Rlt_dec (Q2R b) (Q2R a)); auto; lra.
  - destruct (Rge_dec (Q2R a) (Q2R b)), (Rle_dec (Q2R b) (Q2R a)); auto; lra.
Qed.
Lemma truth_inject v : truth (inject v) = truthQ v.
Proof.
  destruct v as [x|]; [|reflexivity]. simpl. rewrite equal_spec, Q2R_0. now destruct (Req_EM_T (Q2R x) 0).
Qed.

Lemma Int_part_Q x : Int_part (Q2R x) = Qfloor x.
Proof.
  unfold Int_part. rewrite <- (tech_up (Q2R x) (Qfloor x + 1)); [lia| |].
  - pose proof (Qlt_Rlt _ _ (Qlt_floor x)) as L. now rewrite Q2R_integer in L.
  - pose proof (Qle_Rle _ _ (Qfloor_le x)) as L. rewrite Q2R_integer in L. rewrite plus_IZR. lra.
Qed.
Lemma floor_Q x : floor (Q2R x) = Q2R (inject_Z (Qfloor x)).
Proof. unfold floor. now rewrite Int_part_Q, Q2R_integer. Qed.
Lemma Q2R_half x : Q2R x + / 2 = Q2R (x + half).
Proof. rewrite Q2R_plus. unfold half, Q2R at 3; simpl. lra. Qed.
Lemma nearest_Q x : nearest (Q2R x) = Q2R (inject_Z (nearestQ x)).
Proof.
  unfold nearest, nearestQ. rewrite Q2R_half, Int_part_Q, equal_spec. cbv zeta. rewrite !Q2R_integer.
  destruct (Req_EM_T _ _); reflexivity.
Qed.

Lemma Q2R_pow a p : Q2R (Qpower_positive a p) = Q2R a ^ Pos.to_nat p.
Proof.
  induction p using Pos.peano_ind.
  - simpl. lra.
  - rewrite Pos2Nat.inj_succ. rewrite <- Pos.add_1_l.
    rewrite (Qeq_eqR _ _ (Qpower_plus_positive a 1 p)), Q2R_mult, IHp. reflexivity.
Qed.
Lemma Q2R_power a z : Q2R a <> 0 \/ (0 <= z)%Z -> Q2R (Qpower a z) = powerRZ (Q2R a) z.
Proof.
  intros H. destruct z; simpl.
  - apply Q2R_1.
  - apply Q2R_pow.
  - destruct H as [H|H]; [|lia]. rewrite Q2R_inv, Q2R_pow; [reflexivity|].
    intros E. apply Qeq_eqR in E. rewrite Q2R_pow, Q2R_0 in E. now apply pow_nonzero in E.
Qed.

Lemma power_Q a b : agrees (fun x y => y = Q2R x) (powerQ a b) (power (Q2R a) (Q2R b)).
Proof.
  unfold powerQ, power. rewrite !equal_spec, !less_spec, floor_Q, Q2R_0, Int_part_Q.
  destruct (Req_EM_T (Q2R b) (Q2R (inject_Z (Qfloor b)))) as [B|B].
  - assert (IB : Q2R b = IZR (Qfloor b)) by (now rewrite Q2R_integer in B).
    destruct (Rlt_dec 0 (Q2R a)) as [P|P].
    + destruct (Req_EM_T (Q2R a) 0); [lra|]. simpl. eexists. split; [reflexivity|].
      rewrite Q2R_red, Q2R_power, IB by (left; lra). now rewrite powerRZ_Rpower.
    + destruct (Req_EM_T (Q2R a) 0) as [Z|Z]; [destruct (Rlt_dec (Q2R b) 0) as [L|L]|]; simpl; try reflexivity;
        eexists; (split; [reflexivity|]); rewrite Q2R_red, Q2R_power; auto.
      right. apply le_IZR. lra.
  - destruct (Rlt_dec 0 (Q2R a)) as [P|P]; [exact I|].
    destruct (Req_EM_T (Q2R a) 0), (Rlt_dec 0 (Q2R b)); simpl; try reflexivity.
    exists 0. now rewrite Q2R_0.
Qed.

(** *** Each operation *)
Lemma value_of_Q a : value_of a = inject (valueQ_of a).
Proof.
  destruct a; unfold value_of, valueQ_of, inject; [now rewrite Q2R_integer| |reflexivity]. now rewrite Q2R_red.
Qed.

Ltac exact_value := eexists; split; [reflexivity|]; unfold same_value.
Ltac found := exact_value; unfold inject; try f_equal.

Lemma apply1_agrees op v : agrees same_value (apply1Q op v) (apply1 op (inject v)).
Proof.
  destruct op; unfold apply1Q, apply1; cbv zeta; rewrite ?number_inject, ?truth_inject; try exact I.
  - found. now rewrite Q2R_opp.
  - found. rewrite at_most_spec, Q2R_0.
    destruct (Rle_dec 0 (Q2R (numberQ v))); [now apply Rabs_pos_eq|].
    rewrite Q2R_opp. apply Rabs_left. lra.
  - rewrite less_spec, Q2R_0. now destruct (Rlt_dec 0 (Q2R (numberQ v))).
  - rewrite at_most_spec, Q2R_0. now destruct (Rle_dec 0 (Q2R (numberQ v))).
  - found. apply floor_Q.
  - found. apply nearest_Q.
  - found.
  - found. destruct (truthQ v); [now rewrite Q2R_1|now rewrite Q2R_0].
  - found. induction l as [|w l IH]; [reflexivity|]. cbn [existsb]. rewrite IH. f_equal.
    rewrite value_of_Q, number_inject. apply (compare_inject Eq).
Qed.

Lemma apply2_agrees op v w : agrees same_value (apply2Q op v w) (apply2 op (inject v) (inject w)).
Proof.
  destruct op; unfold apply2Q, apply2; cbv zeta; rewrite ?number_inject, ?truth_inject, ?equal_spec, ?Q2R_0.
  - found. now rewrite Q2R_red, Q2R_plus.
  - found. now rewrite Q2R_red, Q2R_minus.
  - found. now rewrite Q2R_red, Q2R_mult.
  - destruct (Req_EM_T (Q2R (numberQ w)) 0) as [E|E]; [reflexivity|]. found.
    rewrite Q2R_red, Q2R_div; [reflexivity|]. intros Z. apply E. rewrite <- Q2R_0. now apply Qeq_eqR.
  - destruct (Req_EM_T (Q2R (numberQ w)) 0) as [E|E]; [reflexivity|]. found.
    assert (Z : ~ numberQ w == 0) by (intros Z; apply E; rewrite <- Q2R_0; now apply Qeq_eqR).
    rewrite Q2R_red, Q2R_minus, Q2R_mult, <- Q2R_div by exact Z. now rewrite floor_Q.
  - destruct (Req_EM_T (Q2R (numberQ w)) 0) as [E|E]; [reflexivity|]. found.
    assert (Z : ~ numberQ w == 0) by (intros Z; apply E; rewrite <- Q2R_0; now apply Qeq_eqR).
    rewrite <- Q2R_div by exact Z. apply floor_Q.
  - pose proof (power_Q (numberQ v) (numberQ w)) as P.
    destruct (powerQ _ _); simpl in P |- *; [|now rewrite P|exact I].
    destruct P as [r [-> ->]]. found.
  - exact_value. rewrite less_spec. now destruct (Rlt_dec _ _).
  - exact_value. rewrite less_spec.
    destruct (Rgt_dec (Q2R (numberQ v)) (Q2R (numberQ w))), (Rlt_dec (Q2R (numberQ w)) (Q2R (numberQ v))); auto; lra.
  - found. apply compare_inject.
  - found.
  - found.
Qed.

Lemma total_Q (f : nat -> R) (g : nat -> Q) keys :
  (forall k, In k keys -> f k = Q2R (g k)) -> total (map f keys) = Q2R (totalQ (map g keys)).
Proof.
  induction keys as [|k keys IH]; intros H; [symmetry; exact Q2R_0|].
  cbn [map total totalQ]. rewrite Q2R_red, Q2R_plus, <- IH, H by auto using in_eq, in_cons. reflexivity.
Qed.

Lemma existsb_same {A} (f g : A -> bool) l : (forall a, In a l -> f a = g a) -> existsb f l = existsb g l.
Proof. induction l as [|a l IH]; simpl; intros H; [reflexivity|]. now rewrite H, IH by auto. Qed.
Lemma forallb_same {A} (f g : A -> bool) l : (forall a, In a l -> f a = g a) -> forallb f l = forallb g l.
Proof. induction l as [|a l IH]; simpl; intros H; [reflexivity|]. now rewrite H, IH by auto. Qed.

Lemma aggregate_agrees N v w d keys : same_sequence N v w -> (forall k, In k keys -> (k < N)%nat) ->
  agrees same_value (aggregateQ N v d keys) (aggregate N w (inject d) keys).
Proof.
  intros S B. destruct keys as [|k [|k' l]]; unfold aggregateQ, aggregate.
  - exact_value. reflexivity.
  - exact_value. now rewrite S by (apply B; simpl; auto).
  - rewrite (existsb_same (fun k => is_number (w k)) (fun k => is_numberQ (v k)))
      by (intros a I; apply in_seq in I; rewrite S by lia; now destruct (v a)).
    destruct (existsb _ _); [|reflexivity]. eexists. split; [reflexivity|]. unfold same_value, inject, mean, meanQ.
    rewrite Q2R_red, Q2R_div.
    + f_equal. f_equal.
      * apply total_Q. intros j J. rewrite S by auto. apply number_inject.
      * now rewrite !map_length, Q2R_nat.
    + simpl length. discriminate.
Qed.

Lemma best_inject N v w keys k : same_sequence N v w -> (forall k, In k keys -> (k < N)%nat) -> (k < N)%nat ->
  best w keys k = bestQ v keys k.
Proof.
  intros S B K. unfold best, bestQ. f_equal. apply forallb_same. intros other O.
  rewrite !S, !number_inject by auto. apply compare_inject.
Qed.

(** *** Outcomes *)
Lemma both_agrees {A A' B B' C C'} (sa : A -> A' -> Prop) (sb : B -> B' -> Prop) (sc : C -> C' -> Prop)
    a a' b b' f (g : A' -> B' -> option C') :
  agrees sa a a' -> agrees sb b b' ->
  (forall x x' y y', sa x x' -> sb y y' -> agrees sc (f x y) (g x' y')) ->
  agrees sc (both a b f) (match a', b' with Some x, Some y => g x y | _, _ => None end).
Proof.
  intros HA HB H. destruct a, b; simpl in *; try exact I; subst;
    try (destruct a'; reflexivity); try reflexivity.
  destruct HA as [x' [-> X]], HB as [y' [-> Y]]. now apply H.
Qed.
Lemma one_agrees {A A' C C'} (sa : A -> A' -> Prop) (sc : C -> C' -> Prop) a a' f (g : A' -> option C') :
  agrees sa a a' -> (forall x x', sa x x' -> agrees sc (f x) (g x')) ->
  agrees sc (one a f) (match a' with Some x => g x | None => None end).
Proof.
  intros HA H. destruct a; simpl in *; try exact I; subst; try reflexivity.
  destruct HA as [x' [-> X]]. now apply H.
Qed.

Lemma everywhere_agrees n f g : (forall q, (q < n)%nat -> agrees same_value (f q) (g q)) ->
  agrees (same_sequence n) (everywhereQ n f (NumQ 0)) (everywhere n g (Num 0)).
Proof.
  induction n as [|n IH]; intros H; simpl.
  - eexists. split; [reflexivity|]. intros q Q. lia.
  - apply (both_agrees (same_sequence n) same_value); [auto with arith|auto with arith|].
    intros x x' y y' X Y. eexists. split; [reflexivity|]. intros q Q. cbv beta.
    destruct (Nat.eqb_spec q n) as [->|D]; [exact Y|]. apply X. lia.
Qed.

Lemma everywhere_found n (f : nat -> valueQ) d :
  exists g, everywhereQ n (fun q => Value (f q)) d = Value g /\ forall q, (q < n)%nat -> g q = f q.
Proof.
  induction n as [|n [g [E G]]]; simpl; [eexists; split; [reflexivity|lia]|].
  rewrite E. simpl. eexists. split; [reflexivity|]. intros q Q. cbv beta.
  destruct (Nat.eqb_spec q n) as [->|D]; [reflexivity|]. apply G. lia.
Qed.

Scheme sop_induction := Induction for sop Sort Prop
  with selector_induction := Induction for selector Sort Prop.
Combined Scheme program_induction from sop_induction, selector_induction.

Section Agreement.
  Variables (N : nat) (tokensQ : nat -> valueQ) (tokens : nat -> value).
  Hypothesis same_tokens : same_sequence N tokensQ tokens.
  Notation sequences := (agrees (same_sequence N)).

  Lemma positions_found f (h : nat -> value) : (forall q, (q < N)%nat -> h q = inject (f q)) ->
    sequences (positionsQ N (fun q => Value (f q))) (Some h).
  Proof.
    intros H. unfold positionsQ. destruct (everywhere_found N f (NumQ 0)) as [g [-> G]].
    exists h. split; [reflexivity|]. intros q Q. rewrite H, G by exact Q. reflexivity.
  Qed.

  Lemma selected_same x y q : same_pattern N x y -> (q < N)%nat -> selected N y q = selected N x q.
  Proof. intros S Q. apply selected_ext. intros k K. now apply S. Qed.
  Lemma selected_in x q k : In k (selected N x q) -> (k < N)%nat.
  Proof. apply selected_below. Qed.

  Lemma sum_heads_agree body bodyQ fs e : (forall e, sequences (bodyQ e) (body e)) ->
    sequences (sum_headsQ N bodyQ fs e) (sum_heads body fs e).
  Proof.
    intros H. revert e. induction fs as [|f fs IH]; intros e; [apply H|].
    cbn [sum_headsQ sum_heads]. induction (size f) as [|n IHn].
    - exists (fun _ => Num 0). split; [reflexivity|]. intros q Q. simpl. now rewrite Q2R_0.
    - apply (both_agrees (same_sequence N) (same_sequence N)); [exact IHn|apply IH|].
      intros x x' y y' X Y. apply positions_found. intros q Q. cbv beta.
      rewrite X, Y, !number_inject by exact Q. unfold inject. now rewrite Q2R_red, Q2R_plus.
  Qed.

  Lemma evalQ_if c a b e : evalQ N tokensQ (IfElse c a b) e =
    both (evalQ N tokensQ c e) (both (evalQ N tokensQ a e) (evalQ N tokensQ b e) (fun v w => Value (v, w)))
      (fun t vw => positionsQ N (fun q => Value (if truthQ (t q) then fst vw q else snd vw q))).
  Proof. reflexivity. Qed.
  Lemma eval_if c a b e : eval N tokens (IfElse c a b) e =
    match eval N tokens c e, eval N tokens a e, eval N tokens b e with
    | Some t, Some v, Some w => Some (fun q => if truth (t q) then v q else w q)
    | _, _, _ => None
    end.
  Proof. reflexivity. Qed.

  (** The executable semantics agrees with [eval]. *)
  Theorem evalQ_agrees :
    (forall p e, agrees (same_sequence N) (evalQ N tokensQ p e) (eval N tokens p e)) /\
    (forall s e, agrees (same_pattern N) (selectQ N tokensQ s e) (select N tokens s e)).
  Proof.
    apply program_induction; simpl.
    - intros e. now exists tokens.
    - intros e. eexists. split; [reflexivity|]. intros q Q. simpl. now rewrite Q2R_nat.
    - intros e. eexists. split; [reflexivity|]. intros q Q. simpl. now rewrite Q2R_nat.
    - intros a e. eexists. split; [reflexivity|]. intros q Q. apply value_of_Q.
    - intros f e. eexists. split; [reflexivity|]. intros q Q. simpl. now rewrite Q2R_nat.
    - intros op a IH e. apply (one_agrees (same_sequence N)); [apply IH|]. intros x x' X.
      apply everywhere_agrees. intros q Q. rewrite X by exact Q. apply apply1_agrees.
    - intros op a IH b IH' e. apply (both_agrees (same_sequence N) (same_sequence N)); [apply IH|apply IH'|].
      intros x x' y y' X Y. apply everywhere_agrees. intros q Q. rewrite X, Y by exact Q. apply apply2_agrees.
    - intros c IHc a IHa b IHb e. rewrite evalQ_if, eval_if. specialize (IHc e). specialize (IHa e). specialize (IHb e).
      destruct (evalQ N tokensQ c e), (evalQ N tokensQ a e), (evalQ N tokensQ b e); simpl in *; try exact I;
        repeat match goal with
        | H : exists _, _ = Some _ /\ _ |- _ => let S := fresh "S" in destruct H as [? [-> S]]
        | H : _ = None |- _ => rewrite H
        end;
        repeat match goal with |- context [match ?r with Some _ => _ | None => _ end] => destruct r end;
        try reflexivity.
      apply positions_found. intros q Q. rewrite S, S0, S1, truth_inject by exact Q. now destruct (truthQ _).
    - intros s IHs values IHv default e.
      apply (both_agrees (same_pattern N) (same_sequence N)); [apply IHs|apply IHv|].
      intros x x' y y' X Y. apply everywhere_agrees. intros q Q. rewrite (selected_same x x') by assumption.
      rewrite value_of_Q. apply aggregate_agrees; [exact Y|apply selected_in].
    - intros s IH e. apply (one_agrees (same_pattern N)); [apply IH|]. intros x x' X.
      apply positions_found. intros q Q. simpl. rewrite Q2R_nat. now rewrite (selected_same x x').
    - intros body IH fs e. now apply sum_heads_agree.
    - intros p keys IHk queries IHq e.
      apply (both_agrees (same_sequence N) (same_sequence N)); [apply IHk|apply IHq|].
      intros x x' y y' X Y. eexists. split; [reflexivity|]. intros q k Q K.
      rewrite X, Y, !number_inject by assumption. apply compare_inject.
    - intros a IHa b IHb e. apply (both_agrees (same_pattern N) (same_pattern N)); [apply IHa|apply IHb|].
      intros x x' y y' X Y. eexists. split; [reflexivity|]. intros q k Q K. now rewrite X, Y.
    - intros a IHa b IHb e. apply (both_agrees (same_pattern N) (same_pattern N)); [apply IHa|apply IHb|].
      intros x x' y y' X Y. eexists. split; [reflexivity|]. intros q k Q K. now rewrite X, Y.
    - intros a IH e. apply (one_agrees (same_pattern N)); [apply IH|]. intros x x' X.
      eexists. split; [reflexivity|]. intros q k Q K. now rewrite X.
    - intros a IHa scores IHs e. apply (both_agrees (same_pattern N) (same_sequence N)); [apply IHa|apply IHs|].
      intros x x' y y' X Y. eexists. split; [reflexivity|]. intros q k Q K.
      rewrite (selected_same x x') by assumption. apply (best_inject N); [exact Y|apply selected_in|exact K].
  Qed.
End Agreement.

(** The output of [runQ] is the result of the program on these tokens, unless it is [Unknown]. *)
Theorem runQ_agrees tokens p :
  match runQ tokens p with
  | Value values => exists y, run (length tokens) (fun q => inject (nth q tokens (NumQ 0))) p = Some y /\
      forall q, (q < length tokens)%nat -> y q = inject (nth q values (NumQ 0))
  | NoValue => run (length tokens) (fun q => inject (nth q tokens (NumQ 0))) p = None
  | Unknown => True
  end.
Proof.
  unfold runQ, run.
  pose proof (proj1 (evalQ_agrees (length tokens) (fun q => nth q tokens (NumQ 0))
    (fun q => inject (nth q tokens (NumQ 0))) (fun q _ => eq_refl)) p (fun _ _ => 0%nat)) as A.
  destruct (evalQ _ _ _ _) as [v| |]; simpl in A |- *; auto.
  destruct A as [y [E S]]. exists y. split; [exact E|]. intros q Q. rewrite S by exact Q.
  rewrite (nth_indep _ _ (v 0%nat)) by (now rewrite map_length, seq_length).
  now rewrite map_nth, seq_nth by exact Q.
Qed.
