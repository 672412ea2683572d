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

// service is a fake KMS with readable ciphertexts.
type service struct {
	fails   error
	missing string // the ARN of a deleted key
	refuses string // the ARN of a key that denies access
	made    int
	asked   []string // the key ids of all Decrypt calls
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

// Another process finds a data key by its id, but only under the same KMS key and with the same
// encryption context.
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
		in    dynamostore.Encryption
		fails bool
	}{
		"the same key":      {kmskeys.New(s, "key-a"), false},
		"an older key":      {kmskeys.New(s, "key-b", older), false},
		"another key alone": {kmskeys.New(s, "key-b"), true},
		"another context":   {kmskeys.New(s, "key-a", other), true},
	} {
		got, err := c.in.Find(t.Context(), made.ID)
		switch {
		case c.fails && (err == nil || errors.Is(err, dynamostore.ErrKeyGone)):
			t.Errorf("%s: %v, %v; want an error, and that the key is not gone", name, got, err)
		case !c.fails && (err != nil || got.ID != made.ID || string(got.Secret) != string(made.Secret)):
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := kmskeys.New(s, "key-a").Find(t.Context(), "not base64!"); !errors.Is(err, dynamostore.ErrKeyGone) {
		t.Errorf("an id that no data key has: %v; want ErrKeyGone", err)
	}
	for _, key := range s.asked {
		if key == "" {
			t.Error("KMS was let to choose the key by itself")
		}
	}
}

// The ARNs of two KMS keys.
const (
	arnA = "arn:aws:kms:eu-west-1:123456789012:key/a"
	arnB = "arn:aws:kms:eu-west-1:123456789012:key/b"
)

// A KMS key that is disabled, throttled, not allowed, unreachable or not found may become available
// again.
func TestS1_NoErrorOfKMSMeansThatADataKeyIsGone(t *testing.T) {
	s := &service{}
	in := kmskeys.New(s, arnA)
	made, err := in.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		&types.DisabledException{}, &types.KMSInvalidStateException{}, &types.KeyUnavailableException{}, &types.KMSInternalException{},
		&types.DependencyTimeoutException{}, errors.New("AccessDeniedException"), context.DeadlineExceeded,
		&types.IncorrectKeyException{}, &types.InvalidCiphertextException{},
		&types.NotFoundException{Message: aws.String("Invalid arn us-east-1")},
	} {
		s.fails = err
		if _, got := in.Find(t.Context(), made.ID); !errors.Is(got, err) || errors.Is(got, dynamostore.ErrKeyGone) {
			t.Errorf("%T: %v; want it, and that the key is not gone", err, got)
		}
		if _, got := in.Current(t.Context()); !errors.Is(got, err) {
			t.Errorf("%T: %v; want it", err, got)
		}
	}
	// A KMS key that can't be used now may be the one that decrypts the data key.
	s.fails, s.missing = nil, arnB
	two := kmskeys.New(s, arnB, func(o *kmskeys.Options) { o.Older = []string{arnA} })
	if got, err := two.Find(t.Context(), made.ID); err != nil || got.ID != made.ID {
		t.Errorf("the first of two keys is not found: %v, %v", got, err)
	}
	s.refuses = arnB
	if got, err := two.Find(t.Context(), made.ID); err != nil || got.ID != made.ID {
		t.Errorf("the first of two keys refuses: %v, %v", got, err)
	}
	s.refuses, s.missing = "", arnA // deleted or misspelled: KMS returns the same error for both
	for name, in := range map[string]dynamostore.Encryption{"the only key": in, "the former key": two} {
		if _, err := in.Find(t.Context(), made.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s is not found: %v; want an error, and that the key is not gone", name, err)
		}
	}
}

// During a deployment that changes the KMS key, the former version doesn't list the new key. It
// reports an error, but not that the data key is gone, because the new version can decrypt the data
// key. If the former version lists the new key in Older, both versions can decrypt all data keys.
func TestS1_ARollingChangeOfTheKMSKeyLosesNothing(t *testing.T) {
	s := &service{}
	older := func(arn string) func(*kmskeys.Options) {
		return func(o *kmskeys.Options) { o.Older = []string{arn} }
	}
	before, prepared, after := kmskeys.New(s, arnA), kmskeys.New(s, arnA, older(arnB)), kmskeys.New(s, arnB, older(arnA))
	fresh, err := after.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Find(t.Context(), fresh.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
		t.Errorf("in one step, the version before: %v; want an error, and that the key is not gone", err)
	}
	if got, err := prepared.Find(t.Context(), fresh.ID); err != nil || got.ID != fresh.ID {
		t.Errorf("in two steps, the version before: %v, %v", got, err)
	}
	former, err := prepared.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Find(t.Context(), former.ID); err != nil || got.ID != former.ID {
		t.Errorf("the version after, of the former key: %v, %v", got, err)
	}
}

// An alias or a key id that KMS does not find, and an alias of another KMS key, may be
// mistakes in a deployment. Neither means that the data key is gone.
func TestS1_AnAliasOrAnIDThatIsNotFoundIsNotGone(t *testing.T) {
	for _, name := range []string{"alias/answers", "arn:aws:kms:eu-west-1:123456789012:alias/answers", "alias/a:key/", "1234abcd-12ab-34cd-56ef-1234567890ab"} {
		s := &service{}
		in := kmskeys.New(s, name)
		made, err := in.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.missing = name
		if _, err := in.Find(t.Context(), made.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s is missing: %v; want an error, and that the key is not gone", name, err)
		}
		s.missing = ""
		other, err := kmskeys.New(s, "key-b").Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Find(t.Context(), other.ID); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s is another key: %v; want an error, and that the key is not gone", name, err)
		}
		if _, err := in.Find(t.Context(), "bm8gZGF0YSBrZXk"); err == nil || errors.Is(err, dynamostore.ErrKeyGone) {
			t.Errorf("%s, of a text that is no data key: %v; want an error, and that the key is not gone", name, err)
		}
	}
}

// New reports mistakes at once, and later changes by the caller have no effect.
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
