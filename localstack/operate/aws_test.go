package operate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// awsCommand is the name by which this test's own binary is the AWS CLI for DynamoDB:
// the CLI and the SDK have one service model, so that an operation and its options are
// named alike (AWS CLI User Guide, "Using the AWS CLI": names in kebab case). So the
// page's lines are run without a CLI, and one that no CLI would take is refused.
const awsCommand = "aws"

// isAWS tells whether this process is to be the CLI.
func isAWS() bool { return filepath.Base(os.Args[0]) == awsCommand }

// runAWS runs a command line of the CLI and returns its exit code.
func runAWS(args []string) int {
	out, err := callDynamoDB(context.Background(), args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(out)
	return 0
}

// callDynamoDB calls the operation that the words name, by the SDK.
func callDynamoDB(ctx context.Context, args []string) (string, error) {
	if len(args) < 2 || args[0] != "dynamodb" || len(args)%2 != 0 {
		return "", fmt.Errorf("aws: %q is no operation of DynamoDB with options", args)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return "", err
	}
	method := reflect.ValueOf(dynamodb.NewFromConfig(cfg)).MethodByName(pascal(args[1]))
	if !method.IsValid() {
		return "", fmt.Errorf("aws: there is no operation %s", args[1])
	}
	input := reflect.New(method.Type().In(1).Elem())
	for i := 2; i < len(args); i += 2 {
		field := input.Elem().FieldByName(pascal(strings.TrimPrefix(args[i], "--")))
		if !strings.HasPrefix(args[i], "--") || !field.IsValid() {
			return "", fmt.Errorf("aws: %s has no option %s", args[1], args[i])
		}
		value, err := option(field.Type(), args[i+1])
		if err != nil {
			return "", fmt.Errorf("aws: %s %s: %w", args[i], args[i+1], err)
		}
		field.Set(value)
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), input})
	if err, failed := results[1].Interface().(error); failed {
		return "", err
	}
	return printedBy(results[0].Elem())
}

// pascal is a name of the CLI's as the API has it: table-name is TableName.
func pascal(name string) string {
	var all strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			all.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return all.String()
}

// option is a value as the CLI takes it: text, JSON, or the shorthand of a structure,
// Name=value,Name=value.
func option(kind reflect.Type, text string) (reflect.Value, error) {
	none := reflect.Value{}
	switch {
	case kind == reflect.TypeFor[map[string]types.AttributeValue](), kind.Kind() == reflect.Slice:
		return fromJSON(kind, []byte(text))
	case kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct:
		structure := reflect.New(kind.Elem())
		for pair := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(pair, "=")
			field := structure.Elem().FieldByName(name)
			if !field.IsValid() {
				return none, fmt.Errorf("there is no %q", name)
			}
			v, err := option(field.Type(), value)
			if err != nil {
				return none, err
			}
			field.Set(v)
		}
		return structure, nil
	case kind == reflect.TypeFor[*string]():
		return reflect.ValueOf(&text), nil
	case kind == reflect.TypeFor[*bool]():
		b, err := strconv.ParseBool(text)
		return reflect.ValueOf(&b), err
	default:
		return none, fmt.Errorf("a value of %v is not known here", kind)
	}
}

// fromJSON reads a value in the JSON form of the CLI. A name that the API doesn't have
// is an error.
func fromJSON(kind reflect.Type, text []byte) (reflect.Value, error) {
	none := reflect.Value{}
	switch {
	case kind == reflect.TypeFor[map[string]types.AttributeValue]():
		item, err := attributevalue.UnmarshalMapJSON(text)
		return reflect.ValueOf(item), err
	case kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct:
		structure, err := fromJSON(kind.Elem(), text)
		if err != nil {
			return none, err
		}
		return structure.Addr(), nil
	case kind.Kind() == reflect.Slice:
		var parts []json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return none, err
		}
		all := reflect.MakeSlice(kind, 0, len(parts))
		for _, part := range parts {
			value, err := fromJSON(kind.Elem(), part)
			if err != nil {
				return none, err
			}
			all = reflect.Append(all, value)
		}
		return all, nil
	case kind.Kind() == reflect.Struct:
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return none, err
		}
		structure := reflect.New(kind).Elem()
		for name, part := range parts {
			field := structure.FieldByName(name)
			if !field.IsValid() {
				return none, fmt.Errorf("there is no %q", name)
			}
			value, err := fromJSON(field.Type(), part)
			if err != nil {
				return none, err
			}
			field.Set(value)
		}
		return structure, nil
	default:
		value := reflect.New(kind)
		err := json.Unmarshal(text, value.Interface())
		return value.Elem(), err
	}
}

// printedBy is an output as the CLI prints it: JSON, or nothing where nothing is in it.
// DynamoDB Local tells what was consumed without being asked; DynamoDB does not.
func printedBy(output reflect.Value) (string, error) {
	all := map[string]any{}
	for i := range output.NumField() {
		if name := output.Type().Field(i).Name; output.Type().Field(i).IsExported() && name != "ResultMetadata" && name != "ConsumedCapacity" && !output.Field(i).IsZero() {
			all[name] = output.Field(i).Interface()
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.MarshalIndent(all, "", "    ")
	return string(text) + "\n", err
}
