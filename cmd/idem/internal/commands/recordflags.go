package commands

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// identity has the values of the flags that identify a record other than by its id. A guard
// makes the id of a record from the same values.
type identity struct {
	lambdaidem.Identity
	idPrefix string // --id-prefix: the guard's Options.IDPrefix
	route    string // --route: the route as show prints it
}

func (i *identity) flags(f *pflag.FlagSet) {
	f.StringVar(&i.Key, "key", "", "the idempotency key, as the client sent it, or as the function made it; a key in double quotes is looked for with and, unless --operation is given, without them")
	f.StringVar(&i.Namespace, "namespace", "", "the guard's Options.Namespace; by default it is the function's name")
	f.StringVar(&i.idPrefix, "id-prefix", "", "the guard's Options.IDPrefix, if it has one")
	f.StringVar(&i.Principal, "caller", "", "the caller that the key belongs to, in the guard's form: jwt:ISS|SUB, iam:ARN, …; empty: no caller")
	f.StringVar(&i.Tenant, "tenant", "", "the Lambda tenant id, if the function has tenant isolation")
	f.StringVar(&i.route, "route", "", `the route as show prints it: "POST /payments/{id}"; the path if there is no template: "POST /payments/7"`)
	f.StringVar(&i.Host, "host", "", "the host of a net/http request, in lower case, unless --route has it before the path")
	f.StringVar(&i.Operation, "operation", "", "the operation of Do or Handler, or the source of a message")
	f.BoolVar(&i.Handler, "handler", false, "with --operation: the operation is of Handler, not of Do")
	f.BoolVar(&i.Message, "message", false, "with --operation: the record is of a message from a queue or a stream")
	f.BoolVar(&i.OwnID, "own-id", false, "with --message: --key is the id that the source gave the message")
}

// candidate is a record that the command line may mean.
type candidate struct {
	id  string
	key string // "" if the record is given by its id
}

// candidates returns the records that the command line may mean: the record with the id in args,
// or those that the flags describe. It returns an error if args has an id and flags are set too,
// because the id and the flags may identify records of different callers.
func (i *identity) candidates(s *dynamostore.Store, args []string) (all []candidate, err error) {
	if len(args) == 1 {
		if *i != (identity{}) {
			return nil, usage(errors.New("an id identifies the record by itself: leave out --key, --namespace, --id-prefix and the other flags that identify a record, or leave out the id"))
		}
		return []candidate{{id: args[0]}}, nil
	}
	may, err := i.identities()
	if err != nil {
		return nil, usage(err)
	}
	for _, who := range may {
		id, err := recordIDOf(s, who, i.idPrefix)
		if err != nil {
			return nil, usage(err)
		}
		if c := (candidate{id, who.Key}); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all, nil
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

// identities returns the identities that the flags may describe. There can be more than one for two
// reasons. Records of several kinds may have the route. And the key may look like a String of RFC
// 9651, which is in quotes: if the key came in a header, the record has the text within the quotes;
// if Options.Key returned it, the record has the quotes too.
func (i *identity) identities() ([]lambdaidem.Identity, error) {
	who := i.Identity
	switch {
	case who.Key == "":
		return nil, errors.New("which record? Give its id, or a --key with --namespace and --route or --operation")
	case who.Namespace == "":
		return nil, errors.New("--key needs --namespace: the guard's Options.Namespace")
	case (i.route == "") == (who.Operation == ""):
		return nil, errors.New("--key needs either --route or --operation")
	case who.Operation == "" && (who.Handler || who.Message):
		return nil, errors.New("--handler and --message go with --operation")
	case who.Handler && who.Message, who.OwnID && !who.Message:
		return nil, errors.New("--own-id goes with --message, and --message without --handler")
	case who.Operation != "" && who.Host != "":
		return nil, errors.New("--host goes with --route")
	case who.Operation != "":
		return []lambdaidem.Identity{who}, nil
	}
	may, err := parseRoute(who, i.route)
	if err != nil {
		return nil, fmt.Errorf("--route: %w", err)
	}
	if key, err := lambdaidem.ParseKey(who.Key); err == nil && key != who.Key {
		for _, who := range may {
			if who.Operation == "" { // only the key of an HTTP request can be in a header
				who.Key = key
				may = append(may, who)
			}
		}
	}
	return may, nil
}
