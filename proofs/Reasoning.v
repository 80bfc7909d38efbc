(** * Reasoning about programs: the results of operations, for all lengths

    [gives e p f]: the s-op p has the number f q at every position q. [says] and [index] state the same
    for booleans and for natural numbers. [selects e s m]: query q selects the keys k with m q k. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp.
Open Scope R_scope.

Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S m => sum m f + f m end.

Lemma everywhere_some : forall A n (f : nat -> option A) d (h : nat -> A),
  (forall q, (q < n)%nat -> f q = Some (h q)) ->
  exists g, everywhere n f d = Some g /\ forall q, (q < n)%nat -> g q = h q.
Proof.
  induction n; intros f d h H; simpl.
  - eexists; split; [reflexivity|lia].
  - destruct (IHn f d h) as [g [E G]]; [auto with arith|].
    rewrite E, (H n) by lia. eexists; split; [reflexivity|].
    intros q Q; simpl. destruct (Nat.eqb_spec q n) as [->|D]; [reflexivity|apply G; lia].
Qed.

Section Reasoning.
  Variable N : nat.
  Variable tokens : nat -> value.

  (** The s-op has a value at every position: the number [f q], or the boolean [b q]. *)
  Definition gives e p (f : nat -> R) :=
    exists g, eval N tokens p e = Some g /\ forall q, (q < N)%nat -> g q = Num (f q).
  Definition says e p (b : nat -> bool) :=
    exists g, eval N tokens p e = Some g /\ forall q, (q < N)%nat -> g q = Bool (b q).
  Definition selects e s (m : nat -> nat -> bool) :=
    exists g, select N tokens s e = Some g /\
      forall q k, (q < N)%nat -> (k < N)%nat -> g q k = m q k.
  (** An s-op of natural numbers: an index. *)
  Definition index e p (f : nat -> nat) := gives e p (fun q => INR (f q)).

  Lemma gives_ext e p f g :
    (forall q, (q < N)%nat -> f q = g q) -> gives e p f -> gives e p g.
  Proof.
    intros H [h [E G]]. exists h; split; [exact E|]. intros q Q. rewrite <- H by exact Q. auto.
  Qed.

  Lemma selects_ext e s m m' :
    (forall q k, (q < N)%nat -> (k < N)%nat -> m q k = m' q k) -> selects e s m -> selects e s m'.
  Proof.
    intros H [h [E G]]. exists h; split; [exact E|]. intros q k Q K. rewrite <- H by auto. auto.
  Qed.

  (** ** Mutual definitions, unfolded once *)
  Lemma eval_aggregate e s v d :
    eval N tokens (Aggregate s v d) e =
    match select N tokens s e, eval N tokens v e with
    | Some m, Some w => positions N (fun q => aggregate N w (value_of d) (selected N m q))
    | _, _ => None
    end.
  Proof. reflexivity. Qed.
  Lemma select_select e p keys queries :
    select N tokens (Select p keys queries) e =
    match eval N tokens keys e, eval N tokens queries e with
    | Some k, Some q => Some (fun i j => compare p (number (k j)) (number (q i)))
    | _, _ => None
    end.
  Proof. reflexivity. Qed.

  (** ** Leaves *)
  Lemma gives_indices e : index e Indices (fun q => q).
  Proof. eexists; split; [reflexivity|reflexivity]. Qed.

  Lemma gives_integer e z : gives e (Constant (Integer z)) (fun _ => IZR z).
  Proof. eexists; split; [reflexivity|reflexivity]. Qed.

  Lemma index_constant e n : index e (Constant (Integer (Z.of_nat n))) (fun _ => n).
  Proof. eexists; split; [reflexivity|]. intros; simpl. now rewrite INR_IZR_INZ. Qed.

  Lemma index_head e f : index e (Head f) (fun _ => e (height f) (number_in_sum f)).
  Proof. eexists; split; [reflexivity|reflexivity]. Qed.

  Lemma gives_tokens e x :
    (forall q, (q < N)%nat -> tokens q = Num (x q)) -> gives e Tokens x.
  Proof. intros H. exists tokens; split; [reflexivity|exact H]. Qed.

  (** ** Elementwise *)

  Lemma gives_binary e op a b f g h :
    gives e a f -> gives e b g ->
    (forall q, (q < N)%nat -> apply2 op (Num (f q)) (Num (g q)) = Some (Num (h q))) ->
    gives e (Binary op a b) h.
  Proof.
    intros [v [E V]] [w [F W]] H. unfold gives. cbn [eval]. rewrite E, F.
    destruct (everywhere_some _ N (fun q => apply2 op (v q) (w q)) (Num 0)
                (fun q => Num (h q))) as [u [D U]].
    - intros q Q. rewrite V, W by exact Q. auto.
    - exists u; split; [exact D|exact U].
  Qed.

  Lemma gives_add e a b f g :
    gives e a f -> gives e b g -> gives e (Binary Add a b) (fun q => f q + g q).
  Proof. intros A B. apply (gives_binary e Add a b f g); auto. Qed.
  Lemma gives_subtract e a b f g :
    gives e a f -> gives e b g -> gives e (Binary Subtract a b) (fun q => f q - g q).
  Proof. intros A B. apply (gives_binary e Subtract a b f g); auto. Qed.
  Lemma gives_multiply e a b f g :
    gives e a f -> gives e b g -> gives e (Binary Multiply a b) (fun q => f q * g q).
  Proof. intros A B. apply (gives_binary e Multiply a b f g); auto. Qed.
  Lemma gives_divide e a b f g :
    gives e a f -> gives e b g -> (forall q, (q < N)%nat -> g q <> 0) ->
    gives e (Binary Divide a b) (fun q => f q / g q).
  Proof.
    intros A B H. apply (gives_binary e Divide a b f g); auto.
    intros q Q. unfold apply2, number. destruct (Req_EM_T (g q) 0) as [Z|_]; [now destruct (H q Q)|reflexivity].
  Qed.

  Lemma gives_unary e op a f h :
    gives e a f -> (forall q, (q < N)%nat -> apply1 op (Num (f q)) = Some (Num (h q))) ->
    gives e (Unary op a) h.
  Proof.
    intros [v [E V]] H. unfold gives. cbn [eval]. rewrite E.
    destruct (everywhere_some _ N (fun q => apply1 op (v q)) (Num 0) (fun q => Num (h q)))
      as [u [D U]].
    - intros q Q. rewrite V by exact Q. auto.
    - exists u; split; [exact D|exact U].
  Qed.
  Lemma gives_exp e a f : gives e a f -> gives e (Unary Exp a) (fun q => exp (f q)).
  Proof. intros A. now apply (gives_unary e Exp a f). Qed.
  Lemma gives_negate e a f : gives e a f -> gives e (Unary Negate a) (fun q => - f q).
  Proof. intros A. now apply (gives_unary e Negate a f). Qed.

  Lemma says_compare e p a b f g :
    gives e a f -> gives e b g ->
    says e (Binary (Compare p) a b) (fun q => compare p (f q) (g q)).
  Proof.
    intros [v [E V]] [w [F W]]. unfold says. cbn [eval]. rewrite E, F.
    destruct (everywhere_some _ N (fun q => apply2 (Compare p) (v q) (w q)) (Num 0)
                (fun q => Bool (compare p (f q) (g q)))) as [u [D U]].
    - intros q Q. now rewrite V, W by exact Q.
    - exists u; split; [exact D|exact U].
  Qed.

  Lemma gives_if e c a b t f g :
    says e c t -> gives e a f -> gives e b g ->
    gives e (IfElse c a b) (fun q => if t q then f q else g q).
  Proof.
    intros [x [E X]] [v [F V]] [w [G W]]. unfold gives. cbn [eval]. rewrite E, F, G.
    eexists; split; [reflexivity|]. intros q Q; simpl.
    rewrite X, V, W by exact Q. simpl. now destruct (t q).
  Qed.

  (** ** Indices *)
  Lemma floor_nat r n : INR n <= r -> r < INR n + 1 -> floor r = INR n.
  Proof.
    intros A B. unfold floor, Int_part.
    rewrite <- (tech_up r (Z.of_nat n + 1)); rewrite ?plus_IZR, <- ?INR_IZR_INZ; try lra.
    replace (Z.of_nat n + 1 - 1)%Z with (Z.of_nat n) by lia. now rewrite <- INR_IZR_INZ.
  Qed.

  Lemma floor_quotient a b : (0 < b)%nat -> floor (INR a / INR b) = INR (a / b).
  Proof.
    intros B. assert (0 < INR b) by (apply lt_0_INR; lia).
    pose proof (Nat.div_mod a b ltac:(lia)) as D.
    pose proof (Nat.mod_upper_bound a b ltac:(lia)) as M.
    assert (E : INR a = INR b * INR (a / b) + INR (a mod b)).
    { rewrite <- mult_INR, <- plus_INR. now f_equal. }
    apply lt_INR in M. pose proof (pos_INR (a mod b)).
    apply floor_nat.
    - apply Rmult_le_reg_r with (INR b); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
    - apply Rmult_lt_reg_r with (INR b); [lra|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  Qed.

  Lemma index_add e a b f g :
    index e a f -> index e b g -> index e (Binary Add a b) (fun q => f q + g q)%nat.
  Proof.
    intros A B. eapply gives_ext; [|exact (gives_add _ _ _ _ _ A B)].
    intros; simpl. now rewrite plus_INR.
  Qed.
  Lemma index_multiply e a b f g :
    index e a f -> index e b g -> index e (Binary Multiply a b) (fun q => f q * g q)%nat.
  Proof.
    intros A B. eapply gives_ext; [|exact (gives_multiply _ _ _ _ _ A B)].
    intros; simpl. now rewrite mult_INR.
  Qed.
  Lemma index_floor_divide e a b f g :
    index e a f -> index e b g -> (forall q, (q < N)%nat -> (0 < g q)%nat) ->
    index e (Binary FloorDivide a b) (fun q => f q / g q)%nat.
  Proof.
    intros A B H. apply (gives_binary e FloorDivide a b _ _ _ A B).
    intros q Q. unfold apply2, number. assert (0 < INR (g q)) by (apply lt_0_INR, H, Q).
    destruct (Req_EM_T (INR (g q)) 0); [lra|]. now rewrite floor_quotient by (apply H, Q).
  Qed.
  Lemma index_modulo e a b f g :
    index e a f -> index e b g -> (forall q, (q < N)%nat -> (0 < g q)%nat) ->
    index e (Binary Modulo a b) (fun q => f q mod g q)%nat.
  Proof.
    intros A B H. apply (gives_binary e Modulo a b _ _ _ A B).
    intros q Q. unfold apply2, number. assert (0 < INR (g q)) by (apply lt_0_INR, H, Q).
    destruct (Req_EM_T (INR (g q)) 0); [lra|]. rewrite floor_quotient by (apply H, Q).
    do 2 f_equal. rewrite (Nat.div_mod (f q) (g q)) at 1 by (pose proof (H q Q); lia).
    rewrite plus_INR, mult_INR. lra.
  Qed.
  Lemma index_if e c a b t f g :
    says e c t -> index e a f -> index e b g ->
    index e (IfElse c a b) (fun q => if t q then f q else g q).
  Proof.
    intros C A B. eapply gives_ext; [|exact (gives_if _ _ _ _ _ _ _ C A B)].
    intros q Q; simpl. now destruct (t q).
  Qed.

  Lemma compare_less a b : compare Lt (INR a) (INR b) = Nat.ltb a b.
  Proof.
    simpl. destruct (Nat.ltb_spec a b), (Rlt_dec (INR a) (INR b)) as [L|L]; auto.
    - exfalso. now apply L, lt_INR.
    - exfalso. apply INR_lt in L. lia.
  Qed.
  Lemma compare_equal a b : compare Eq (INR a) (INR b) = Nat.eqb a b.
  Proof.
    unfold compare. destruct (Nat.eqb_spec a b), (Req_EM_T (INR a) (INR b)) as [E|E]; auto; exfalso.
    now apply n, INR_eq.
  Qed.
  Lemma says_less e a b f g :
    index e a f -> index e b g -> says e (Binary (Compare Lt) a b) (fun q => Nat.ltb (f q) (g q)).
  Proof.
    intros A B. destruct (says_compare e Lt a b _ _ A B) as [h [E H]].
    exists h; split; [exact E|]. intros q Q. now rewrite H, compare_less by exact Q.
  Qed.

  (** ** Selectors and attention *)
  Lemma selects_equal e keys queries f g :
    index e keys f -> index e queries g ->
    selects e (Select Eq keys queries) (fun q k => Nat.eqb (f k) (g q)).
  Proof.
    intros [v [E V]] [w [F W]]. unfold selects. rewrite select_select, E, F.
    eexists; split; [reflexivity|]. intros q k Q K.
    cbv beta. rewrite V, W by assumption. apply compare_equal.
  Qed.

  Lemma selected_at m m' q q' :
    (forall k, (k < N)%nat -> m q k = m' q' k) -> selected N m q = selected N m' q'.
  Proof.
    intros H. unfold selected. apply filter_ext_in. intros k K. apply in_seq in K. apply H; lia.
  Qed.
  Lemma selected_ext m m' q :
    (forall k, (k < N)%nat -> m q k = m' q k) -> selected N m q = selected N m' q.
  Proof. apply selected_at. Qed.

  Lemma selected_below m q k : In k (selected N m q) -> (k < N)%nat /\ m q k = true.
  Proof. unfold selected. rewrite filter_In, in_seq. intros [A B]. split; [lia|exact B]. Qed.

  (** The mean over the selected keys, and 0 for no key. *)
  Lemma gives_aggregate e s values m f :
    selects e s m -> gives e values f ->
    gives e (Aggregate s values (Integer 0)) (fun q => mean (map f (selected N m q))).
  Proof.
    intros [x [E X]] [v [F V]]. unfold gives. rewrite eval_aggregate, E, F.
    destruct (everywhere_some _ N
      (fun q => aggregate N v (Num 0) (selected N x q)) (Num 0)
      (fun q => Num (mean (map f (selected N m q))))) as [u [D U]]; [|exists u; auto].
    intros q Q. rewrite (selected_ext x m q) by (intros; now apply X).
    assert (A : forall k, In k (selected N m q) -> v k = Num (f k)).
    { intros k K. apply V. now apply selected_below in K. }
    destruct (selected N m q) as [|k [|k' l]] eqn:L; unfold aggregate.
    - unfold mean; simpl. do 2 f_equal. unfold Rdiv. now rewrite Rmult_0_l.
    - rewrite A by (simpl; auto). unfold mean; simpl. do 2 f_equal. lra.
    - replace (existsb _ _) with true.
      + do 3 f_equal. apply map_ext_in. intros j J. now rewrite A.
      + symmetry. apply existsb_exists. exists k. split; [|rewrite A by (simpl; auto); reflexivity].
        apply in_seq. assert (K : In k (selected N m q)) by (rewrite L; simpl; auto).
        apply selected_below in K. lia.
  Qed.

  Lemma filter_none (f : nat -> bool) l : (forall k, In k l -> f k = false) -> filter f l = [].
  Proof.
    induction l; simpl; intros H; [reflexivity|]. rewrite (H a) by auto. apply IHl; auto.
  Qed.

  Lemma selected_one g q : (g q < N)%nat -> selected N (fun q k => Nat.eqb k (g q)) q = [g q].
  Proof.
    intros H. unfold selected. replace N with (g q + (1 + (N - g q - 1)))%nat by lia.
    rewrite seq_app, filter_app, filter_none; [|intros k K; apply in_seq in K; apply Nat.eqb_neq; lia].
    rewrite seq_app, filter_app. simpl seq at 1. simpl. rewrite Nat.eqb_refl.
    rewrite filter_none; [reflexivity|].
    intros k K; apply in_seq in K; apply Nat.eqb_neq; lia.
  Qed.

  (** A head that fetches one value: [aggregate(select(indices, place, ==), values)]. *)
  Definition fetch place values := Aggregate (Select Eq Indices place) values (Integer 0).

  Lemma gives_fetch e place values g f :
    index e place g -> gives e values f -> (forall q, (q < N)%nat -> (g q < N)%nat) ->
    gives e (fetch place values) (fun q => f (g q)).
  Proof.
    intros P V H.
    pose proof (selects_equal e Indices place _ _ (gives_indices e) P) as S.
    eapply gives_ext; [|exact (gives_aggregate _ _ _ _ _ S V)].
    intros q Q; simpl. rewrite selected_one by auto. unfold mean; simpl. lra.
  Qed.

  (** A place outside of the sequence selects no key, so the result is the default. *)
  Lemma gives_fetch_or e place values g f :
    index e place g -> gives e values f ->
    gives e (fetch place values) (fun q => if Nat.ltb (g q) N then f (g q) else 0).
  Proof.
    intros P V.
    pose proof (selects_equal e Indices place _ _ (gives_indices e) P) as S.
    eapply gives_ext; [|exact (gives_aggregate _ _ _ _ _ S V)].
    intros q Q; cbv beta. destruct (Nat.ltb_spec (g q) N) as [L|L].
    - rewrite selected_one by exact L. unfold mean; simpl. lra.
    - replace (selected N (fun q k => Nat.eqb k (g q)) q) with (@nil nat).
      + unfold mean; simpl. unfold Rdiv. now rewrite Rmult_0_l.
      + symmetry. apply filter_none. intros k K. apply in_seq in K. apply Nat.eqb_neq. lia.
  Qed.

  (** ** Families of heads *)
  Lemma gives_sum e body f (h : nat -> nat -> R) :
    (forall t, (t < size f)%nat -> gives (bind e f t) body (h t)) ->
    gives e (SumOver body [f]) (fun q => sum (size f) (fun t => h t q)).
  Proof.
    unfold gives. cbn [eval sum_heads]. intros H. induction (size f) as [|n IH].
    - eexists; split; reflexivity.
    - destruct IH as [a [E A]]; [auto with arith|]. rewrite E.
      destruct (H n) as [b [F B]]; [lia|]. rewrite F.
      eexists; split; [reflexivity|]. intros q Q; simpl.
      now rewrite A, B by exact Q.
  Qed.
End Reasoning.
