// Package kmskeys implements dynamostore.Options.Encryption with data keys from AWS Key Management
// Service (AWS KMS). The section "Data keys" of the AWS KMS developer guide describes data keys.
//
//	store := dynamostore.New(client, "idempotency", func(o *dynamostore.Options) {
//		o.Encryption = kmskeys.New(kms.NewFromConfig(cfg), keyARN)
//	})
//
// Each process gets a data key from KMS with GenerateDataKey and encrypts with it. After the
// duration Encryption.KeyFor, the process gets another data key. Each encrypted text is stored with
// the id of its data key. The id is the data key itself, encrypted by KMS. To decrypt, another
// process passes the id to the operation Decrypt of KMS, and caches the data key for
// Encryption.KeyFor too. So most requests need no call to KMS. AWS CloudTrail logs who called KMS.
// Automatic rotation of the KMS key works without changes.
//
// The function's IAM policy must allow kms:GenerateDataKey and kms:Decrypt on the KMS key.
// Operators need kms:Decrypt to see answers.
package kmskeys

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// API has the methods of a KMS client that this package calls. *kms.Client implements it.
type API interface {
	GenerateDataKey(context.Context, *kms.GenerateDataKeyInput, ...func(*kms.Options)) (*kms.GenerateDataKeyOutput, error)
	Decrypt(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
}

// Options are the optional settings of [New].
type Options struct {
	// Older lists the ids or ARNs of the KMS keys that may decrypt data keys, besides the key that
	// encrypts. Default: none. To change keys, deploy twice: first with the new key in Older, so
	// that every process can decrypt with it. Then deploy with the new key passed to [New] and the
	// former key in Older.
	//
	// After the second deployment, the former key must stay in Older, and enabled in KMS, for the
	// sum of the TTL, the function's timeout and 15 minutes. It must stay longer if a record from
	// before that deployment still waits for an operator (policy lambdaidem.Hold).
	//
	// All other KMS keys are refused. Otherwise anyone who can write to the table could store a
	// forged answer, encrypted under a KMS key of their own.
	Older []string

	// Context is the encryption context of each call to KMS; see "Encryption context" in the AWS
	// KMS developer guide. It is not secret: KMS logs it in CloudTrail. A key policy can demand a
	// certain context. Default: {"lambdaidem": "answers"}.
	//
	// KMS decrypts a data key only with the Context with which it was encrypted. So don't change
	// Context while the table has answers or steps that were encrypted with the old Context.
	Context map[string]string
}

// New returns an Encryption that encrypts with the KMS key of the given id, ARN or alias. It sends
// no request. It panics if client is nil, or if key or a key in Options.Older is empty.
//
// A replay fails if its answer can't be decrypted:
//   - The response is 503 if a KMS key is missing in Options.Older, if Options.Context has changed,
//     or if an ARN is misspelled or of another Region. Correct the setting.
//   - The response is also 503 if the KMS key was deleted, because KMS returns the same error as
//     for a misspelled ARN. Purge the answers of a deleted key.
//   - The response is 500 if the stored id of a data key is damaged.
//
// To change to another KMS key, deploy twice, so that every process can decrypt with the new key
// before any process encrypts with it. First add the new key to Options.Older and deploy
// everywhere. Then pass the new key to New, move the former key to Options.Older, and deploy again.
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

// service implements the functions Current and Find of dynamostore.Encryption with KMS.
type service struct {
	client  API
	keys    []string          // ids, ARNs or aliases of KMS keys; the first one encrypts
	context map[string]string // Options.Context
}

// generate returns a new data key. It implements dynamostore.Encryption.Current.
func (s *service) generate(ctx context.Context) (dynamostore.Key, error) {
	out, err := s.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: aws.String(s.keys[0]), KeySpec: types.DataKeySpecAes256, EncryptionContext: s.context,
	})
	if err != nil {
		return dynamostore.Key{}, fmt.Errorf("kmskeys: GenerateDataKey under %s: %w", s.keys[0], err)
	}
	return dynamostore.Key{ID: base64.RawURLEncoding.EncodeToString(out.CiphertextBlob), Secret: out.Plaintext}, nil
}

// decrypt returns the data key with the given id. The id is the encrypted data key, so KMS can
// decrypt it. decrypt implements dynamostore.Encryption.Find.
//
// The error wraps dynamostore.ErrKeyGone only if the id is damaged. An error of KMS does not prove
// that the key is lost: the cause may be a mistake in the configuration, which can be corrected.
func (s *service) decrypt(ctx context.Context, id string) (dynamostore.Key, error) {
	blob, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return dynamostore.Key{}, fmt.Errorf("kmskeys: the key's id is no data key of KMS: %w: %w", err, dynamostore.ErrKeyGone)
	}
	var failed []error
	for _, key := range s.keys {
		out, err := s.client.Decrypt(ctx, &kms.DecryptInput{KeyId: aws.String(key), CiphertextBlob: blob, EncryptionContext: s.context})
		if err == nil {
			return dynamostore.Key{ID: id, Secret: out.Plaintext}, nil
		}
		failed = append(failed, fmt.Errorf("kmskeys: Decrypt under %s: %w", key, err))
	}
	return dynamostore.Key{}, errors.Join(failed...)
}
