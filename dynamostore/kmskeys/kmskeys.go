// Package kmskeys implements dynamostore.Options.Encryption with data keys from AWS Key
// Management Service (AWS KMS). The section "Data keys" of the AWS KMS developer guide
// describes data keys.
//
//	store := dynamostore.New(client, "idempotency", func(o *dynamostore.Options) {
//		o.Encryption = kmskeys.New(kms.NewFromConfig(cfg), keyARN)
//	})
//
// Each process calls GenerateDataKey once per Encryption.KeyFor, and encrypts with the
// data key that it gets. Each encrypted text is stored with the id of its data key. The id
// is the data key itself, encrypted by KMS. To decrypt, another process calls Decrypt with
// the id, once per Encryption.KeyFor for each data key. So most requests need no call of
// KMS. AWS CloudTrail logs who called KMS. Automatic rotation of the KMS key works without
// changes.
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
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
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
	// Older lists the ids or ARNs of other KMS keys that may decrypt data keys, besides
	// the key that encrypts. List former keys here, and list a new key here one deployment
	// before it begins to encrypt. Default: none.
	//
	// A data key that was encrypted by a KMS key that is not listed is refused. Otherwise
	// anyone who can write to the table could store an answer that they have encrypted
	// with a KMS key of their own.
	Older []string

	// Context is the encryption context of each call to KMS; see "Encryption context" in
	// the AWS KMS developer guide. It is not secret: KMS logs it in CloudTrail. A key
	// policy can demand a certain context. Default: {"lambdaidem": "answers"}.
	//
	// KMS decrypts a data key only with the Context with which it was encrypted. So don't
	// change Context while the table has answers or steps that were encrypted with the old
	// one.
	Context map[string]string
}

// New returns an Encryption that encrypts with the KMS key of the given id, ARN or alias.
// It sends no request. It panics if client is nil, or if key or a key in Options.Older is
// empty.
//
// Specify all keys by their ARNs. If KMS does not find a key by its id or alias, the cause can
// be a mistake in a deployment, such as another account or Region. If KMS does not find a key
// by its ARN, this package assumes that the key was deleted.
//
// A replay whose answer can't be decrypted fails in one of two ways:
//   - It fails with 500 for good if all keys are given by ARNs and KMS finds none of them, or
//     if the stored id of the data key is damaged (not base64).
//   - It fails with 503 after any other error of Decrypt, until Decrypt succeeds. The cause
//     may be a mistake that can be corrected: a KMS key that is missing in Older, another
//     Context, an alias or a key id that KMS does not find, or an ARN of another Region.
//
// To change to another KMS key, add the new key to Older and deploy everywhere. Then make
// it the key that encrypts, with the former key in Older, and deploy again. If you do both
// in one deployment, replays of answers that the new key encrypted fail with 503 in
// processes of the old deployment.
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

// decrypt returns the data key with the given id. The id is the data key itself in encrypted
// form, so KMS can decrypt it. decrypt tries the KMS keys one after another. The error wraps
// dynamostore.ErrKeyGone if the data key can never be decrypted. decrypt implements
// dynamostore.Encryption.Find.
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

// isGone reports whether KMS has deleted a KMS key. key is the KMS key's id, ARN or alias.
// err is the error of a Decrypt with that key. isGone returns false for errors that a mistake
// in a deployment can cause, because the data key can be decrypted once the mistake is
// corrected:
//   - IncorrectKeyException: the data key was encrypted under a KMS key that this version
//     of the function does not name.
//   - InvalidCiphertextException: the data key was encrypted with another Options.Context.
//   - NotFoundException for an alias or a key id: the alias does not exist, or the id
//     belongs to another account or Region.
//   - NotFoundException with a message such as "Invalid arn us-east-1": the ARN belongs
//     to another Region than the KMS endpoint.
func isGone(key string, err error) bool {
	notFound, ok := errors.AsType[*types.NotFoundException](err)
	return ok && isKeyARN(key) && !strings.HasPrefix(notFound.ErrorMessage(), "Invalid arn")
}

// isKeyARN reports whether key is the ARN of a KMS key. It returns false for a key id, an
// alias, and the ARN of an alias.
func isKeyARN(key string) bool {
	parsed, err := arn.Parse(key)
	return err == nil && strings.HasPrefix(parsed.Resource, "key/")
}
