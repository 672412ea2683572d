// Package kmskeys has the keys of dynamostore.Options.Encryption from AWS Key
// Management Service: data keys, as "Data keys" in the AWS KMS developer guide
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
	"github.com/aws/aws-sdk-go-v2/aws/arn"
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
	// Older lists the ids or ARNs of other KMS keys that may decrypt, besides the one
	// that encrypts: former keys, and one that will encrypt after the next deployment.
	// No other KMS key is used to decrypt. Otherwise anyone who can write to the table
	// could encrypt an answer with a KMS key of their own. The default is none.
	Older []string

	// Context is the encryption context, which KMS writes to CloudTrail and a policy
	// can ask for ("Encryption context"). It is no secret. It must be the same for as
	// long as what was encrypted lasts. Default: {"lambdaidem": "answers"}.
	Context map[string]string
}

// New returns an encryption with the KMS key of that id, ARN or alias. It sends nothing
// yet. It panics if client is nil or a key is empty.
//
// An answer is unavailable for good (500) only if KMS says that each of these keys was
// deleted, and each is given by its ARN. Whatever else keeps a data key from being
// decrypted, such as a KMS key that is missing in Older, another Context, or an alias or
// a key id that KMS does not find, is taken for a mistake in a deployment. Replays then
// fail with 503 until the mistake is corrected. Name keys by their ARNs, so that a
// deleted key can be recognized.
//
// To change to another KMS key, add the new one to Older and deploy everywhere. Then
// make it the key that encrypts, with the former one in Older, and deploy again. If both
// are done in one deployment, the versions that don't name the new key answer replays of
// what it encrypted with 503 until they are replaced.
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

// isGone reports whether err, the error of Decrypt with the KMS key named key, says that
// the KMS key was deleted. Other errors may come from a mistake in a deployment, and the
// data key can be decrypted once the mistake is corrected:
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

// isKeyARN reports whether key is the ARN of a KMS key. An alias, and the ARN of an
// alias, are not.
func isKeyARN(key string) bool {
	parsed, err := arn.Parse(key)
	return err == nil && strings.HasPrefix(parsed.Resource, "key/")
}
