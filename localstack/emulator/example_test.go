package emulator_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func ExampleStart() {
	sam, err := template.Read("testdata/template.yaml", template.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	e, err := emulator.Start(ctx, emulator.Options{
		Template: sam,
		Binary:   func(string) string { return bootstrap }, // by logical ID
		Log:      io.Discard,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = e.Close() }()

	result, err := e.Invoke(ctx, "Probe", []byte(`{"hello":"world"}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(result.Payload))
	fmt.Println(len(e.Processes("Probe")), "process,", e.Processes("Probe")[0].State)
	// Output:
	// {"body":"{\"hello\":\"world\"}","statusCode":200}
	// 1 process, idle
}
