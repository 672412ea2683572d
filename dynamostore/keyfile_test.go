package dynamostore

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// secretOf returns the base64 of 32 equal bytes.
func secretOf(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, secretBytes))
}

func TestS1_ParseKeysReadsAKeyFile(t *testing.T) {
	for name, text := range map[string]string{
		"plain":            "k2 " + secretOf(2) + "\nk1 " + secretOf(1) + "\n",
		"no last newline":  "k2 " + secretOf(2) + "\nk1 " + secretOf(1),
		"comments, tabs":   "# the first one encrypts\n\n\tk2\t" + secretOf(2) + "  \n  # before May\nk1 " + secretOf(1) + "\n",
		"made on Windows":  "\ufeff# keys\r\nk2 " + secretOf(2) + "\r\nk1 " + secretOf(1) + "\r\n",
		"with a mark only": "\ufeffk2 " + secretOf(2) + "\nk1 " + secretOf(1),
	} {
		keys, err := ParseKeys([]byte(text))
		if err != nil || len(keys) != 2 {
			t.Errorf("%s: %v, %v", name, keys, err)
			continue
		}
		for i, id := range []string{"k2", "k1"} {
			if want := bytes.Repeat([]byte{byte(2 - i)}, secretBytes); keys[i].ID != id || !bytes.Equal(keys[i].Secret, want) {
				t.Errorf("%s: key %d is %s with another secret", name, i, keys[i])
			}
		}
		current, err := StaticKeys(keys...).Current(t.Context())
		if err != nil || current.ID != "k2" {
			t.Errorf("%s: %v encrypts, %v", name, current, err)
		}
	}
}

// No error shows a secret, even if the columns are swapped.
func TestS1_ParseKeysNeverShowsASecret(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("\xfb\xff0123456789abcdef0123456789abcd"))
	url := strings.NewReplacer("+", "-", "/", "_").Replace(secret)
	for text, want := range map[string]string{
		"":                                     "there is no key",
		"# nothing\n":                          "there is no key",
		secret + " k1":                         "line 1: the first column could be a secret",
		"k1 " + secret + "\n" + secret + " k2": "line 2: the first column could be a secret",
		secret + " " + secretOf(1):             "line 1: the first column could be a secret",
		url + " k1":                            "line 1: the first column could be a secret",
		strings.TrimRight(secret, "=") + " k1": "line 1: the first column could be a secret",
		strings.TrimRight(url, "=") + " " + secretOf(1): "line 1: the first column could be a secret",
		"k1 " + url:                              "line 1: the second column is not base64",
		"\n\nk1 " + secret[:40]:                  "line 3: its secret has 30 bytes",
		secret[:40] + " k1k1":                    "line 1: its secret has 3 bytes",
		"k1 " + secret + " " + secret:            "line 1: it has 3 columns instead of 2",
		secret:                                   "line 1: it has 1 columns instead of 2",
		"k1 " + secret + "\n\nk1 " + secretOf(1): "line 3: the id is that of line 1",
		strings.Repeat("k", 1025) + " " + secret: "line 1: its id has 1025 bytes",
		"k\xff " + secret:                        "line 1: its id is not UTF-8",
	} {
		keys, err := ParseKeys([]byte(text))
		if err == nil || keys != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, keys, err, want)
			continue
		}
		for _, form := range []string{secret, url} {
			if strings.Contains(err.Error(), form[:8]) {
				t.Errorf("%q: the error shows the secret: %v", text, err)
			}
		}
	}
}

// If the fields of a Key are swapped in code, the id is the secret.
func TestS1_APanicOfStaticKeysShowsNoSecret(t *testing.T) {
	for _, secret := range []string{secretOf(7), string(bytes.Repeat([]byte{0xff}, secretBytes))} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "key 1") || strings.Contains(said, secret[:8]) || strings.Contains(said, `\xff`) {
					t.Error(said)
				}
			}()
			StaticKeys(Key{ID: secret, Secret: []byte("k1")})
		}()
	}
}
