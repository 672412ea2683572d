package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// identity has the values of the flags that identify a record other than by its id. A guard
// makes the id of a record from the same values.
type identity struct {
	lambdaidem.Identity
	idPrefix    string // --id-prefix: the guard's Options.IDPrefix
	route, path string // --route and --path: the method, a space, and the route or path
}

func (i *identity) flags(f *pflag.FlagSet) {
	f.StringVar(&i.Key, "key", "", "the idempotency key, as the client sent it (with --operation: as the function passed it)")
	f.StringVar(&i.Namespace, "namespace", "", "the guard's Options.Namespace; by default it is the function's name")
	f.StringVar(&i.idPrefix, "id-prefix", "", "the guard's Options.IDPrefix, if it has one")
	f.StringVar(&i.Principal, "caller", "", "the caller that the key belongs to, in the guard's form: jwt:ISS|SUB, iam:ARN, …; empty: no caller")
	f.StringVar(&i.Tenant, "tenant", "", "the Lambda tenant id, if the function has tenant isolation")
	f.StringVar(&i.route, "route", "", `method and route template: "POST /payments/{id}"`)
	f.StringVar(&i.path, "path", "", `method and path, if there is no template: "POST /payments/7"`)
	f.StringVar(&i.Host, "host", "", "the host of a net/http request, in lower case")
	f.StringVar(&i.Operation, "operation", "", "the operation of Do or Handler, or the source of a message")
	f.BoolVar(&i.Handler, "handler", false, "with --operation: the operation is of Handler, not of Do")
	f.BoolVar(&i.Message, "message", false, "with --operation: the record is of a message from a queue or a stream")
	f.BoolVar(&i.OwnID, "own-id", false, "with --message: --key is the id that the source gave the message")
}

// record returns the id of the record that the command line identifies: the id in args, or
// the id for the flags. It returns an error if both are given, because they may identify the
// records of two callers.
func (i *identity) record(s *dynamostore.Store, args []string) (string, error) {
	if len(args) == 1 {
		if *i != (identity{}) {
			return "", usage(errors.New("an id identifies the record by itself: leave out --key, --namespace, --id-prefix and the other flags that identify a record, or leave out the id"))
		}
		return args[0], nil
	}
	who, err := i.identity()
	if err != nil {
		return "", usage(err)
	}
	id, err := recordIDOf(s, who, i.idPrefix)
	if err != nil {
		return "", usage(err)
	}
	return id, nil
}

// recordIDOf returns the id of the record for an identity and a guard's Options.IDPrefix. It asks
// a guard, which makes the ids, and returns an error if the guard does not accept the prefix.
func recordIDOf(s *dynamostore.Store, who lambdaidem.Identity, idPrefix string) (id string, err error) {
	defer func() {
		if refused := recover(); refused != nil { // New panics if an option is invalid
			err = fmt.Errorf("--id-prefix: %v", refused)
		}
	}()
	return lambdaidem.New(s, func(o *lambdaidem.Options) { o.Namespace, o.IDPrefix = who.Namespace, idPrefix }).RecordID(who), nil
}

// identity returns the identity that the flags describe. It returns an error if they don't
// describe exactly one record.
func (i *identity) identity() (lambdaidem.Identity, error) {
	who := i.Identity
	switch {
	case who.Key == "":
		return who, errors.New("which record? Give its id, or a --key with --namespace and --route, --path or --operation")
	case who.Namespace == "":
		return who, errors.New("--key needs --namespace: the guard's Options.Namespace")
	case countNonEmpty(i.route, i.path, who.Operation) != 1:
		return who, errors.New("--key needs one of --route, --path and --operation")
	case who.Operation == "" && (who.Handler || who.Message):
		return who, errors.New("--handler and --message go with --operation")
	case who.Handler && who.Message, who.OwnID && !who.Message:
		return who, errors.New("--own-id goes with --message, and --message without --handler")
	case who.Operation != "":
		return who, nil
	}
	var of string
	var ok bool
	who.Method, of, ok = strings.Cut(i.route+i.path, " ")
	if !ok || who.Method != strings.ToUpper(who.Method) || !strings.HasPrefix(of, "/") && !strings.HasPrefix(of, "$") {
		return who, fmt.Errorf("%q is not a method and a route: \"POST /payments\"", i.route+i.path)
	}
	if i.route != "" {
		who.Route, who.Path = of, of // the guard uses the path if the template is a catch-all
	} else {
		who.Path = of
	}
	key, err := lambdaidem.ParseKey(who.Key)
	if err != nil {
		return who, fmt.Errorf("--key: %w", err)
	}
	who.Key = key
	return who, nil
}

// countNonEmpty returns how many of the texts are not empty.
func countNonEmpty(texts ...string) int {
	n := 0
	for _, t := range texts {
		if t != "" {
			n++
		}
	}
	return n
}
