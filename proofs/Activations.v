(** * Activations, entry by entry, for all shapes (Listing 4, remark on activations)

    The theorem, [activation_correct]: for each activation a with [sound a], the program [activated a]
    computes the function [activation a] of every entry. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums.
Open Scope R_scope.

(** ** Programs *)

Inductive activation_name :=
  | Relu | LeakyRelu (slope : atom) | Abs | Gelu (half root : atom) | Sigmoid | Silu | TanH | EluPlusOne.

Definition sigmoid_of (x : sop) : sop :=
  let small := Unary Exp (Unary Negate (Unary Absolute x)) in
  Binary Divide (IfElse (Binary (Compare Ge) x (integer 0)) (integer 1) small)
    (Binary Add (integer 1) small).

(** Activations other than [Relu], [LeakyRelu] and [Abs] receive 0 outside of the matrix. *)
Definition activated (a : activation_name) (r c : nat) (s : sop) : sop :=
  let x := IfElse (inside r c) s (integer 0) in
  match a with
  | Relu => Binary Maximum s (integer 0)
  | LeakyRelu slope => Binary Maximum s (Binary Multiply (Constant slope) s)
  | Abs => Binary Maximum s (Unary Negate s)
  | Gelu half root =>
      Binary Multiply (Binary Multiply (Constant half) x)
        (Binary Add (integer 1) (Unary Erf (Binary Divide x (Constant root))))
  | Sigmoid => sigmoid_of x
  | Silu => Binary Multiply x (sigmoid_of x)
  | TanH => Unary Tanh x
  | EluPlusOne =>
      IfElse (Binary (Compare Gt) x (integer 0)) (Binary Add x (integer 1))
        (Unary Exp (Binary Minimum x (integer 0)))
  end.

(** ** Meaning *)

Definition real (a : atom) : R := number (value_of a).

(** The slope of a leaky ReLU, and ½ and √2 in GELU, are the floats of the program. *)
Definition activation (a : activation_name) (x : R) : R :=
  match a with
  | Relu => Rmax x 0
  | LeakyRelu slope => Rmax x (real slope * x)
  | Abs => Rabs x
  | Gelu half root => real half * x * (1 + erf (x / real root))
  | Sigmoid => 1 / (1 + exp (- x))
  | Silu => x * (1 / (1 + exp (- x)))
  | TanH => tanh x
  | EluPlusOne => if Rgt_dec x 0 then x + 1 else exp x
  end.

Definition sound (a : activation_name) : Prop :=
  match a with
  | LeakyRelu slope => is_number (value_of slope) = true
  | Gelu half root =>
      is_number (value_of half) = true /\ is_number (value_of root) = true /\ real root <> 0
  | _ => True
  end.

Lemma sigmoid_split x :
  (if compare Ge x 0 then 1 else exp (- Rabs x)) / (1 + exp (- Rabs x)) = 1 / (1 + exp (- x)).
Proof.
  unfold compare. destruct (Rge_dec x 0) as [G|G].
  - rewrite Rabs_right by exact G. reflexivity.
  - apply Rnot_ge_lt in G. rewrite (Rabs_left x) by exact G. rewrite Ropp_involutive.
    rewrite (exp_Ropp x). pose proof (exp_pos x). field. split; lra.
Qed.

Section Activations.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation holds := (holds N tokens context).

  Lemma gives_atom e a : is_number (value_of a) = true -> gives e (Constant a) (fun _ => real a).
  Proof.
    intros A. eexists; split; [reflexivity|]. intros q Q. unfold real.
    now destruct (value_of a).
  Qed.
  Lemma gives_maximum e a b f g :
    gives e a f -> gives e b g -> gives e (Binary Maximum a b) (fun q => Rmax (f q) (g q)).
  Proof.
    intros A B. apply (gives_binary N tokens e Maximum a b f g); auto. intros q Q.
    unfold apply2, number, Rmax. destruct (Rgt_dec (f q) (g q)), (Rle_dec (f q) (g q)); auto; lra || (do 2 f_equal; lra).
  Qed.
  Lemma gives_minimum e a b f g :
    gives e a f -> gives e b g -> gives e (Binary Minimum a b) (fun q => Rmin (f q) (g q)).
  Proof.
    intros A B. apply (gives_binary N tokens e Minimum a b f g); auto. intros q Q.
    unfold apply2, number, Rmin. destruct (Rlt_dec (f q) (g q)), (Rle_dec (f q) (g q)); auto; lra || (do 2 f_equal; lra).
  Qed.
  Lemma gives_absolute e a f : gives e a f -> gives e (Unary Absolute a) (fun q => Rabs (f q)).
  Proof. intros A. now apply (gives_unary N tokens e Absolute a f). Qed.

  Lemma gives_sigmoid e x f : gives e x f ->
    gives e (sigmoid_of x) (fun q => 1 / (1 + exp (- f q))).
  Proof.
    intros F. assert (S : gives e (Unary Exp (Unary Negate (Unary Absolute x))) (fun q => exp (- Rabs (f q))))
      by (apply gives_exp, gives_negate, gives_absolute, F).
    eapply gives_ext; [|apply gives_divide; [apply gives_if; [apply says_compare; [exact F|
      apply (gives_integer N tokens e 0)]|apply (gives_integer N tokens e 1)|exact S]|
      apply gives_add; [apply (gives_integer N tokens e 1)|exact S]|]].
    - intros q Q. cbv beta. apply (sigmoid_split (f q)).
    - intros q Q. pose proof (exp_pos (- Rabs (f q))). simpl. lra.
  Qed.

  (** Every activation with [sound a], on every matrix. *)
  Theorem activation_correct a r c s M : sound a ->
    holds (row_major s r c) M ->
    holds (row_major (activated a r c s) r c) (fun i j => activation a (M i j)).
  Proof.
    intros A H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    set (inner := match a with Relu | LeakyRelu _ | Abs => false | _ => true end).
    set (g := fun q => if inner then if Nat.ltb q (r * c) then f q else 0 else f q).
    apply holds_compact. split; [exact E0|]. exists (fun q => activation a (g q)). split.
    - intros e E. specialize (F e E).
      pose proof (gives_inside_or N tokens e r c s f F) as X.
      pose proof (gives_integer N tokens e 0) as Z. pose proof (gives_integer N tokens e 1) as O.
      destruct a as [|slope| |half root| | | |]; simpl in A; cbn [activation activated];
        unfold g, inner; cbv iota.
      + now apply gives_maximum.
      + now apply gives_maximum, gives_multiply; [|apply gives_atom|].
      + eapply gives_ext; [|apply gives_maximum; [exact F|apply gives_negate, F]].
        intros q Q. cbv beta. unfold Rmax, Rabs.
        destruct (Rle_dec (f q) (- f q)), (Rcase_abs (f q)); lra.
      + destruct A as [A1 [A2 A3]].
        apply gives_multiply; [apply gives_multiply; [now apply gives_atom|exact X]|].
        apply gives_add; [exact O|].
        apply (gives_unary N tokens e Erf _ (fun q => (if Nat.ltb q (r * c) then f q else 0) / real root));
          [|reflexivity].
        apply gives_divide; [exact X|now apply gives_atom|auto].
      + now apply gives_sigmoid.
      + apply gives_multiply; [exact X|now apply gives_sigmoid].
      + now apply (gives_unary N tokens e Tanh _ _ _ X).
      + eapply gives_ext; [|apply gives_if; [apply says_compare; [exact X|exact Z]|
          apply gives_add; [exact X|exact O]|apply gives_exp, gives_minimum; [exact X|exact Z]]].
        intros q Q. cbv beta. unfold compare.
        destruct (Rgt_dec _ 0); [reflexivity|]. f_equal. apply Rmin_left. lra.
    - intros i j I J. destruct (H i j I J) as [L V]. split; [exact L|]. unfold g.
      rewrite (proj2 (Nat.ltb_lt (i * c + j) (r * c))) by nia. destruct inner; now rewrite V.
  Qed.
End Activations.
