// Package kmskeys has the keys of dynamostore.Options.Encryption from AWS Key
// Management Service (S1): data keys, as "Data keys" in the AWS KMS developer guide
// describes them.
//
// A process asks GenerateDataKey for a key of its own once in Encryption.KeyFor, and
// encrypts with it; the key, encrypted by KMS, is the id that stands beside each text.
// Another process asks Decrypt for it, once in Encryption.KeyFor for each key that it
// meets. So most requests cost nothing, and AWS's CloudTrail has who asked. Automatic
// rotation of the KMS key needs nothing.
//
// The function's policy needs kms:GenerateDataKey and kms:Decrypt on that key;
// operators need kms:Decrypt to see answers.
package kmskeys

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// API is what is asked of KMS. A *kms.Client is one.
type API interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Options are what [New] can be told. The zero value of every field is its default.
type Options struct {
	// Older are KMS keys that encrypted before this one did, by their ids or ARNs:
	// their data keys are found too. A KMS key that is neither is never asked, so
	// that nobody who writes to the table can bring a key of his own. Default: none.
	Older []string

	// Context is the encryption context, which KMS writes to CloudTrail and a policy
	// can ask for ("Encryption context"). It is no secret. It must be the same for as
	// long as what was encrypted lasts. Default: {"lambdaidem": "answers"}.
	Context map[string]string
}

// New returns an encryption with the KMS key of that id, ARN or alias. It sends nothing
// yet. It panics if client is nil or a key is empty.
//
// An answer whose KMS key was deleted is unavailable for good. An alias that is missing,
// or that points to another key, counts as a slip of a deployment: replays fail
// with 503 until it is mended. A key's ARN is best.
func New(client API, key string, optFns ...func(*Options)) dynamostore.Encryption {
	o := Options{Context: map[string]string{"lambdaidem": "answers"}}
	for _, fn := range optFns {
		fn(&o)
	}
	all := append([]string{key}, o.Older...)
	if client == nil || slices.Contains(all, "") {
		panic("kmskeys: New: client is nil, or a key is empty; pass kms.NewFromConfig(cfg) and a key's ARN")
	}
	s := &service{client: client, keys: all, context: maps.Clone(o.Context)}
	return dynamostore.Encryption{Current: s.generate, Find: s.decrypt}
}

type service struct {
	client  API
	keys    []string // the first one encrypts
	context map[string]string
}

func (s *service) generate(ctx context.Context) (dynamostore.Key, error) {
	out, err := s.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(s.keys[0]), KeySpec: types.DataKeySpecAes256, EncryptionContext: s.context,
	})
	if err != nil {
		return dynamostore.Key{}, fmt.Errorf("kmskeys: GenerateDataKey under %s: %w", s.keys[0], err)
	}
	return dynamostore.Key{ID: base64.RawURLEncoding.EncodeToString(out.CiphertextBlob), Secret: out.Plaintext}, nil
}

func (s *service) decrypt(ctx context.Context, id string) (dynamostore.Key, error) {
	blob, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return dynamostore.Key{}, fmt.Errorf("kmskeys: the key's id is no data key of KMS: %w: %w", err, dynamostore.ErrKeyGone)
	}
	var failed []error
	gone := true
	for _, key := range s.keys {
		out, err := s.client.Decrypt(ctx, &kms.DecryptInput{KeyId: aws.String(key), CiphertextBlob: blob, EncryptionContext: s.context})
		if err == nil {
			return dynamostore.Key{ID: id, Secret: out.Plaintext}, nil
		}
		failed = append(failed, fmt.Errorf("kmskeys: Decrypt under %s: %w", key, err))
		gone = gone && isGone(key, err)
	}
	if gone {
		failed = append(failed, dynamostore.ErrKeyGone)
	}
	return dynamostore.Key{}, errors.Join(failed...)
}

// isGone reports whether KMS says that a key will never decrypt this data key. A key
// that is disabled, or waits for its deletion, may come back. So may an alias that is
// missing or points to another key: that is a slip of a deployment.
func isGone(key string, err error) bool {
	if is[*types.NotFoundException](err) || is[*types.IncorrectKeyException](err) {
		return !isAlias(key)
	}
	return is[*types.InvalidCiphertextException](err)
}

// isAlias reports whether a key is named by an alias, or by the ARN of one ("KeyId" of
// Decrypt in the AWS KMS API Reference).
func isAlias(key string) bool {
	return strings.HasPrefix(key, "alias/") || strings.Contains(key, ":alias/")
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
