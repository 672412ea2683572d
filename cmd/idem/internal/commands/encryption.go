package commands

import (
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/kmskeys"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keys has the values of the flags for the keys that the table's functions encrypt with.
type keys struct {
	file    string            // --key-file
	kms     []string          // --kms-key: the current KMS key first, then older ones
	context map[string]string // --kms-context: the encryption context
}

// Environment variables that replace --key-file and --kms-key if neither flag is given.
const (
	keyFileVariable = "IDEM_KEY_FILE"
	kmsKeyVariable  = "IDEM_KMS_KEY"
)

func (k *keys) flags(f *pflag.FlagSet) {
	f.StringVar(&k.file, "key-file", "", "a file in the format of dynamostore.ParseKeys: one key per line, an id and 32 bytes in base64; the first key encrypts; default: $"+keyFileVariable)
	f.StringArrayVar(&k.kms, "kms-key", nil, "the KMS key of package kmskeys; repeat the flag for each older key; default: $"+kmsKeyVariable)
	f.StringToStringVar(&k.context, "kms-context", nil, "a pair of kmskeys.Options.Context: name=value; may be repeated; default: that of package kmskeys")
}

func (k *keys) given() bool { return k.file != "" || len(k.kms) > 0 }

// encryption returns the Encryption for the keys of the flags. If the flags give no key, it
// uses the keys of the environment variables. If there are none, it returns the zero
// Encryption.
func (k *keys) encryption(cfg aws.Config) (dynamostore.Encryption, error) {
	if !k.given() {
		k.file = os.Getenv(keyFileVariable)
		if key := os.Getenv(kmsKeyVariable); key != "" {
			k.kms = []string{key}
		}
	}
	switch {
	case len(k.context) > 0 && len(k.kms) == 0:
		return dynamostore.Encryption{}, usage(errors.New("--kms-context is of --kms-key; give that too"))
	case k.file != "" && len(k.kms) > 0:
		return dynamostore.Encryption{}, usage(errors.New("--key-file and --kms-key can't go together"))
	case k.file != "":
		return readKeys(k.file)
	case len(k.kms) > 0:
		for _, key := range k.kms {
			if key == "" {
				return dynamostore.Encryption{}, usage(errors.New("--kms-key is empty"))
			}
		}
		return kmskeys.New(kms.NewFromConfig(cfg), k.kms[0], func(o *kmskeys.Options) {
			if o.Older = k.kms[1:]; len(k.context) > 0 {
				o.Context = k.context
			}
		}), nil
	}
	return dynamostore.Encryption{}, nil
}

// checkFor returns an error if the functions that use the record encrypt answers and no key was
// given. Without a key, the answer would be stored in plain text, and functions with
// Encryption.Only would never replay it. In the opposite case, a key was given but the record does
// not show that its functions encrypt. Then checkFor prints a warning, because functions without
// the key can't read the answer.
func (k *keys) checkFor(a *app, seen dynamostore.Inspected, result lambdaidem.Result) error {
	noAnswer := result.Failure != nil && result.Failure.Code == lambdaidem.ErrAnswerUnavailable
	encrypted := seen.Encrypted || seen.StepsUnread != nil
	switch {
	case encrypted && !k.given() && !noAnswer:
		return usage(errors.New("the record's functions encrypt answers; give their key by --key-file or --kms-key, or settle it by --no-answer"))
	case !encrypted && k.given():
		say(a.Err, "WARNING: the record doesn't show that its functions encrypt answers. Your answer will be encrypted, and functions without this key can't replay it.\n")
	}
	return nil
}

// readKeys returns the Encryption for the keys in a file. The errors are usage errors.
func readKeys(name string) (dynamostore.Encryption, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the file is one of the user's own
	if err != nil {
		return dynamostore.Encryption{}, usage(fmt.Errorf("--key-file: %w", err))
	}
	keys, err := dynamostore.ParseKeys(text)
	if err != nil {
		return dynamostore.Encryption{}, usage(fmt.Errorf("--key-file: %s: %w", name, err))
	}
	return dynamostore.StaticKeys(keys...), nil
}
