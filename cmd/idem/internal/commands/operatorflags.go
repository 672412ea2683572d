package commands

import (
	"errors"
	"os"
	"os/user"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// operatorFlags has the values of --by and --reason: who changes the record, and why.
type operatorFlags struct{ by, reason string }

func (s *operatorFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&s.by, "by", operatorName(), "your name, which the record keeps; default: $"+operatorVariable+", or the user's name")
	f.StringVar(&s.reason, "reason", "", "why you do it, such as a ticket; the record keeps it (required)")
	f.Lookup("by").DefValue = ""
}

// operatorVariable is the environment variable for the default of --by.
const operatorVariable = "IDEM_OPERATOR"

func operatorName() string {
	if name := os.Getenv(operatorVariable); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (s *operatorFlags) operator(store *dynamostore.Store, optFns ...func(*dynamostore.OperatorOptions)) (*dynamostore.Operator, error) {
	if s.reason == "" {
		return nil, usage(errors.New("why? Use --reason; the record keeps it"))
	}
	o, err := store.Operator(s.by, s.reason, optFns...)
	return o, usage(err)
}
