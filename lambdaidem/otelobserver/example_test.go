package otelobserver_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/otelobserver"
)

func Example() {
	reader := sdkmetric.NewManualReader() // a program uses an exporter's reader instead
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	telemetry := otelobserver.New(func(o *otelobserver.Options) { o.MeterProvider = provider })
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.Observers(o.Observer, telemetry)
	})

	call := lambdaidem.Call{Operation: "charge", Key: "order-1"}
	for range 3 {
		_, _ = lambdaidem.Do(context.Background(), guard, call, func(context.Context) (string, error) { return "ch_1", nil })
	}

	var collected metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &collected)
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, p := range sum.DataPoints {
				outcome, _ := p.Attributes.Value("lambdaidem.outcome")
				fmt.Println(m.Name, outcome.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// lambdaidem.outcomes new 1
	// lambdaidem.outcomes replayed 2
}
