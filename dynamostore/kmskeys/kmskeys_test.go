package kmskeys_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/kmskeys"
)

// service is a KMS whose ciphertexts are readable.
type service struct {
	fails   error
	missing string // a key that was deleted
	refuses string // a key that denies access
	made    int
	asked   []string // key ids of Decrypts
}

func (s *service) GenerateDataKey(_ context.Context, in *kms.GenerateDataKeyInput, _ ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if in.KeySpec != types.DataKeySpecAes256 {
		return nil, fmt.Errorf("KeySpec is %q", in.KeySpec)
	}
	s.made++
	secret := fmt.Sprintf("%032d", s.made)
	return &kms.GenerateDataKeyOutput{Plaintext: []byte(secret), CiphertextBlob: []byte(*in.KeyId + "|" + fmt.Sprint(in.EncryptionContext) + "|" + secret)}, nil
}

func (s *service) Decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	s.asked = append(s.asked, aws.ToString(in.KeyId))
	parts := strings.Split(string(in.CiphertextBlob), "|")
	switch {
	case s.fails != nil:
		return nil, s.fails
	case aws.ToString(in.KeyId) == s.refuses:
		return nil, errors.New("AccessDeniedException")
	case aws.ToString(in.KeyId) == s.missing:
		return nil, &types.NotFoundException{}
	case len(parts) != 3, parts[1] != fmt.Sprint(in.EncryptionContext):
		return nil, &types.InvalidCiphertextException{}
	case parts[0] != aws.ToString(in.KeyId):
		return nil, &types.IncorrectKeyException{}
	}
	return &kms.DecryptOutput{Plaintext: []byte(parts[2])}, nil
}

// S1: what one process encrypts with, another one finds by its id, under the same
// KMS key and the same encryption context alone.
func TestS1_DataKeysAreFoundByTheirIDs(t *testing.T) {
	s := &service{}
	made, err := kmskeys.New(s, "key-a").Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := kmskeys.New(s, "key-a").Current(t.Context())
	if err != nil || again.ID == made.ID {
		t.Errorf("the same key twice: %v, %v", again, err)
	}
	older := func(o *kmskeys.Options) { o.Older = []string{"key-0", "key-a"} }
	other := func(o *kmskeys.Options) { o.Context = map[string]string{"for": "others"} }
	for name, c := range map[string]struct {
		in   dynamostore.Encryption
		gone bool
	}{
		"the same key":      {kmskeys.New(s, "key-a"), false},
		"an older key":      {kmskeys.New(s, "key-b", older), false},
		"another key alone": {kmskeys.New(s, "key-b"), true},
		"another context":   {kmskeys.New(s, "key-a", other), true},
	} {
		got, err := c.in.Find(t.Context(), made.ID)
		switch {
		case c.gone && !errors.Is(err, dynamostore.ErrKeyGone):
			t.Errorf("%s: %v, %v; want ErrKeyGone", name, got, err)
		case !c.gone && (err != nil || got.ID != made.ID || string(got.Secret) != string(made.Secret)):
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, id := range []string{"not base64!", "bm8gZGF0YSBrZXk"} {
		if _, err := kmskeys.New(s, "key-a").Find(t.Context(), id); !errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%q: %v; want ErrKeyGone", id, err)
		}
	}
	for _, key := range s.asked {
		if key == "" {
			t.Error("KMS was let to choose the key by itself")
		}
	}
}

// S1: a KMS key that is deleted is gone; one that is disabled, throttled, not allowed
// or not reached may be back.
func TestS1_WhatIsGoneAndWhatIsNot(t *testing.T) {
	s := &service{}
	in := kmskeys.New(s, "key-a")
	made, err := in.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		&types.DisabledException{}, &types.KMSInvalidStateException{}, &types.KeyUnavailableException{}, &types.KMSInternalException{},
		&types.DependencyTimeoutException{}, errors.New("AccessDeniedException"), context.DeadlineExceeded,
	} {
		s.fails = err
		if _, got := in.Find(t.Context(), made.ID); !errors.Is(got, err) || errors.Is(got, dynamostore.ErrKeyGone) {
			t.Errorf("%T: %v; want it, and that the key is not gone", err, got)
		}
		if _, got := in.Current(t.Context()); !errors.Is(got, err) {
			t.Errorf("%T: %v; want it", err, got)
		}
	}
	// One that can't be asked now may be the one that knows it.
	s.fails, s.missing = nil, "key-b"
	two := kmskeys.New(s, "key-b", func(o *kmskeys.Options) { o.Older = []string{"key-a"} })
	if got, err := two.Find(t.Context(), made.ID); err != nil || got.ID != made.ID {
		t.Errorf("the first of two keys is deleted: %v, %v", got, err)
	}
	s.refuses = "key-b"
	if got, err := two.Find(t.Context(), made.ID); err != nil || got.ID != made.ID {
		t.Errorf("the first of two keys refuses: %v, %v", got, err)
	}
	s.missing = "key-a"
	if _, err := two.Find(t.Context(), made.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
		t.Errorf("the first of two keys refuses, the other is deleted: %v; it may be back", err)
	}
	if _, err := in.Find(t.Context(), made.ID); !errors.Is(err, dynamostore.ErrKeyGone) {
		t.Errorf("deleted: %v; want ErrKeyGone", err)
	}
}

// S1: an alias that is missing, or points to another key, can be set right again; a
// ciphertext that KMS calls invalid can't.
func TestS1_AnAliasThatIsNotFoundIsNotGone(t *testing.T) {
	for _, alias := range []string{"alias/answers", "arn:aws:kms:eu-west-1:123456789012:alias/answers"} {
		s := &service{}
		in := kmskeys.New(s, alias)
		made, err := in.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.missing = alias
		if _, err := in.Find(t.Context(), made.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s is missing: %v; want an error, and that the key is not gone", alias, err)
		}
		s.missing = ""
		other, err := kmskeys.New(s, "key-b").Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Find(t.Context(), other.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s points to another key: %v; want an error, and that the key is not gone", alias, err)
		}
		if _, err := in.Find(t.Context(), "bm8gZGF0YSBrZXk"); !errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s, of a text that is no data key: %v; want ErrKeyGone", alias, err)
		}
	}
}

// What is wrong is said at once, and what the caller changes later is its own.
func TestNewNamesWhatIsWrong(t *testing.T) {
	for name, do := range map[string]func(){
		"no client":      func() { kmskeys.New(nil, "key-a") },
		"no key":         func() { kmskeys.New(&service{}, "") },
		"an empty older": func() { kmskeys.New(&service{}, "key-a", func(o *kmskeys.Options) { o.Older = []string{""} }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			do()
		}()
	}
	of := map[string]string{"a": "b"}
	in := kmskeys.New(&service{}, "key-a", func(o *kmskeys.Options) { o.Context = of })
	made, err := in.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(of, func(string, string) bool { return true })
	if _, err := in.Find(t.Context(), made.ID); err != nil {
		t.Errorf("the caller changed its map: %v", err)
	}
}
