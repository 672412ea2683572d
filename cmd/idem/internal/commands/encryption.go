package commands

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/kmskeys"
)

// keys say how what a table keeps is encrypted (S1): those of its functions.
type keys struct {
	file    string
	kms     []string
	context map[string]string
}

// The environment's names for them.
const (
	keyFileVariable = "IDEM_KEY_FILE"
	kmsKeyVariable  = "IDEM_KMS_KEY"
)

func (k *keys) flags(f *pflag.FlagSet) {
	f.StringVar(&k.file, "key-file", "", "a file with the keys of dynamostore.StaticKeys, that which encrypts first, a line each: an id and 32 bytes of base64; default: $"+keyFileVariable)
	f.StringArrayVar(&k.kms, "kms-key", nil, "the KMS key of package kmskeys; again for each older one; default: $"+kmsKeyVariable)
	f.StringToStringVar(&k.context, "kms-context", nil, "kmskeys.Options.Context, a pair each: name=value; default: that of package kmskeys")
}

func (k *keys) given() bool { return k.file != "" || len(k.kms) > 0 }

// encryption is what the flags ask for, or the environment where they ask for none;
// else the zero one.
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
		return keysIn(k.file)
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

// keysIn reads a file of keys. What it says of a line never shows the key.
func keysIn(name string) (e dynamostore.Encryption, err error) {
	text, err := os.ReadFile(name) //nolint:gosec // it is the user's own
	if err != nil {
		return e, usage(fmt.Errorf("--key-file: %w", err))
	}
	var all []dynamostore.Key
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		const idAndSecret = 2
		if len(fields) != idAndSecret {
			return e, usage(fmt.Errorf("--key-file: line %d of %s has %d words; a line is an id and a key in base64", n, name, len(fields)))
		}
		secret, err := base64.StdEncoding.DecodeString(fields[1])
		if err != nil {
			return e, usage(fmt.Errorf("--key-file: the key in line %d of %s is no base64", n, name))
		}
		all = append(all, dynamostore.Key{ID: fields[0], Secret: secret})
	}
	if err := lines.Err(); err != nil {
		return e, usage(fmt.Errorf("--key-file: %s: %w", name, err))
	}
	// What no key can be is the user's mistake, and StaticKeys' panic.
	defer func() {
		if v := recover(); v != nil {
			e, err = dynamostore.Encryption{}, usage(fmt.Errorf("--key-file: %s: %v", name, v))
		}
	}()
	return dynamostore.StaticKeys(all...), nil
}
