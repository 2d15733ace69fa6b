package main

import (
	"context"
	"errors"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// metrics answers from the readings of the step.
type metrics struct{ *cluster }

func (m metrics) GetResourceMetric(
	_ context.Context, resource corev1.ResourceName, _ string, _ labels.Selector, container string,
) (metricsclient.PodMetricsInfo, time.Time, error) {
	for _, given := range m.reading.Resource {
		if given.Name == string(resource) && given.Container == container {
			return m.ofPods(given)
		}
	}
	return nil, time.Time{}, errors.New("no metrics returned from resource metrics API")
}

func (m metrics) GetRawMetric(
	name string, _ string, _ labels.Selector, selector labels.Selector,
) (metricsclient.PodMetricsInfo, time.Time, error) {
	for _, given := range m.reading.Pods {
		if given.Name == name && given.Selector == selector.String() {
			if measured, at, err := m.ofPods(given); err != nil || len(measured) > 0 {
				return measured, at, err
			}
			break // as the real client
		}
	}
	return nil, time.Time{}, errors.New("no metrics returned from custom metrics API")
}

func (m metrics) GetObjectMetric(
	name string, _ string, described *autoscalingv2.CrossVersionObjectReference, selector labels.Selector,
) (int64, time.Time, error) {
	for _, given := range m.reading.Object {
		if given.Name == name && given.Selector == selector.String() &&
			given.Described == described.Kind+"/"+described.Name {
			return given.Value, time.Now(), asError(given.Error)
		}
	}
	return 0, time.Time{}, errors.New("no metrics returned from custom metrics API")
}

func (m metrics) GetExternalMetric(
	name string, _ string, selector labels.Selector,
) ([]int64, time.Time, error) {
	for _, given := range m.reading.External {
		if given.Name == name && given.Selector == selector.String() {
			if len(given.Values) == 0 && given.Error == "" {
				break // as the real client
			}
			return given.Values, time.Now(), asError(given.Error)
		}
	}
	return nil, time.Time{}, errors.New("no metrics returned from external metrics API")
}

func (m metrics) ofPods(given podReadings) (metricsclient.PodMetricsInfo, time.Time, error) {
	if given.Error != "" {
		return nil, time.Time{}, errors.New(given.Error)
	}
	now := time.Now()
	measured := metricsclient.PodMetricsInfo{}
	for name, value := range given.Values {
		if m.follow && !m.exists(name) {
			continue
		}
		measured[name] = metricsclient.PodMetric{
			Value:     value[0],
			Timestamp: now.Add(-time.Duration(value[1]) * time.Millisecond),
			Window:    time.Duration(value[2]) * time.Millisecond,
		}
	}
	if given.Share != 0 {
		for name, metric := range measured {
			metric.Value = given.Share / int64(len(measured))
			measured[name] = metric
		}
	}
	return measured, now, nil
}

func (m metrics) exists(name string) bool {
	_, found, err := m.cached.GetByKey(m.scale.Namespace + "/" + name)
	must(err)
	return found
}

func asError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
