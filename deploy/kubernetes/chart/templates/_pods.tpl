{{- define "slipstream.labels" -}}
app.kubernetes.io/name: slipstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The name of a server's pod, without its number. */ -}}
{{- define "slipstream.server" -}}
{{ .Release.Name }}-servers-{{ if eq .Values.mode "training" }}0-{{ end }}
{{- end }}

{{- /* What a run.yaml cannot know. */ -}}
{{- define "slipstream.settings" }}
{{- $servers := list }}
{{- range $shard := until (int .Values.servers.count) }}
{{- $servers = append $servers (printf "%s%d.%s:7070" (include "slipstream.server" $) $shard $.Release.Name) }}
{{- end }}
{{- if .Values.mtls.servers }}
- {name: PS_SECURITY_MTLS_CA, value: /certs/ca.crt}
{{- else }}
- {name: PS_SECURITY_PLAINTEXT, value: accept_the_risk}
{{- end }}
- {name: PS_NAME, value: {{ .Release.Name }}}
- {name: PS_CLUSTER_SERVERS, value: "{{ join "," $servers }}"}
- {name: PS_CLUSTER_WORKERS, value: "{{ .Values.workers.count }}"}
- {name: PS_HTTP_LISTEN, value: "0.0.0.0:9464"}
- {name: PS_DURABILITY_LEVEL, value: {{ .Values.durability }}}
{{- if ne .Values.durability "memory" }}
- {name: PS_DURABILITY_DIRECTORY, value: /state/checkpoints}
{{- end }}
{{- if eq .Values.mode "serving" }}
- {name: PS_RUN_AFTER, value: stay}
{{- if ne .Values.durability "memory" }}
- {name: PS_DURABILITY_ONCE, value: "true"}
{{- end }}
{{- end }}
{{- end }}

{{- define "slipstream.container" -}}
workingDir: /tmp
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "slipstream.pod" -}}
# A Service named ps would otherwise set PS_PORT, which is no setting.
enableServiceLinks: false
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "slipstream.probe" -}}
httpGet: {path: {{ .path }}, port: http{{ if .root.Values.mtls.servers }}, scheme: HTTPS{{ end }}}
{{- end }}

{{- define "slipstream.serverPod" -}}
metadata:
  labels:
    {{- include "slipstream.labels" . | nindent 4 }}
    app.kubernetes.io/component: server
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "9464"
    prometheus.io/path: /metrics
    {{- if .Values.mtls.servers }}
    prometheus.io/scheme: https
    {{- end }}
spec:
  {{- include "slipstream.pod" . | nindent 2 }}
  # A server that is asked to end finishes what is under way within 10 s, and then saves.
  terminationGracePeriodSeconds: 60
  {{- if eq .Values.mode "training" }}
  restartPolicy: Never
  {{- end }}
  # Shards go to different nodes where there are some.
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "slipstream.labels" . | nindent 10 }}
          app.kubernetes.io/component: server
  containers:
    - name: server
      image: {{ .Values.image }}
      command: [/opt/slipstream/bin/ps_server]
      args: [--config, /etc/slipstream/run.yaml, --shard, $(SHARD), --listen, "0.0.0.0:7070"]
      env:
        - name: SHARD
          valueFrom: {fieldRef: {fieldPath: "metadata.labels['{{ .index }}']"}}
        {{- include "slipstream.settings" . | trim | nindent 8 }}
      ports:
        - {name: grpc, containerPort: 7070}
        - {name: http, containerPort: 9464}
      # A server that starts reads its checkpoint and log first.
      startupProbe:
        {{- include "slipstream.probe" (dict "path" "/livez" "root" .) | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 300
      livenessProbe:
        {{- include "slipstream.probe" (dict "path" "/livez" "root" .) | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "slipstream.probe" (dict "path" "/readyz" "root" .) | nindent 8 }}
        periodSeconds: 2
      resources:
        {{- toYaml .Values.servers.resources | nindent 8 }}
      {{- include "slipstream.container" . | nindent 6 }}
      volumeMounts:
        - {name: config, mountPath: /etc/slipstream, readOnly: true}
        - {name: state, mountPath: /state}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.mtls.servers }}
        - {name: certs, mountPath: /certs, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ .Release.Name }}-run}
    - name: tmp
      emptyDir: {}
    {{- if eq .Values.mode "training" }}
    - name: state
      persistentVolumeClaim: {claimName: {{ .Release.Name }}-state}
    {{- end }}
    {{- if .Values.mtls.servers }}
    - name: certs
      secret: {secretName: {{ .Values.mtls.servers }}, defaultMode: 0440}
    {{- end }}
{{- end }}

{{- define "slipstream.workerJob" -}}
completionMode: Indexed
completions: {{ .Values.workers.count }}
parallelism: {{ .Values.workers.count }}
# The run goes on without a worker, so that a worker is started again for as long as the run goes on.
backoffLimitPerIndex: 100
podReplacementPolicy: Failed
podFailurePolicy:
  rules:
    - action: Ignore        # Evicted, preempted, or its node is gone: start another one.
      onPodConditions: [{type: DisruptionTarget}]
    - action: FailJob       # Wrong flags or settings; the run has failed or diverged.
      onExitCodes: {containerName: worker, operator: In, values: [2, 78, 80, 81]}
template:
  metadata:
    labels:
      {{- include "slipstream.labels" . | nindent 6 }}
      app.kubernetes.io/component: worker
  spec:
    {{- include "slipstream.pod" . | nindent 4 }}
    terminationGracePeriodSeconds: 30
    restartPolicy: Never
    containers:
      - name: worker
        image: {{ .Values.image }}
        command: [/opt/slipstream/bin/ps_worker]
        args: [--coordinator, "{{ include "slipstream.server" . }}0.{{ .Release.Name }}:7070", --worker, $(WORKER)]
        env:
          - name: WORKER
            valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
          {{- if eq .Values.mode "training" }}
          - {name: PS_MODEL_SAVE_DIR, value: /state/models}
          {{- end }}
          {{- if .Values.data.claim }}
          - {name: PS_DATA_PATH, value: /data}
          {{- end }}
          {{- if .Values.mtls.workers }}
          - {name: PS_SECURITY_MTLS_CA, value: /certs/ca.crt}
          - {name: PS_SECURITY_MTLS_CERTIFICATE, value: /certs/worker.crt}
          - {name: PS_SECURITY_MTLS_KEY, value: /certs/worker.key}
          {{- end }}
        resources:
          {{- $resources := deepCopy .Values.workers.resources }}
          {{- if .Values.workers.gpus }}
          {{- $limits := dict "nvidia.com/gpu" .Values.workers.gpus }}
          {{- $resources = mergeOverwrite $resources (dict "limits" $limits) }}
          {{- end }}
          {{- toYaml $resources | nindent 10 }}
        {{- include "slipstream.container" . | nindent 8 }}
        volumeMounts:
          {{- if eq .Values.mode "training" }}
          - {name: state, mountPath: /state}
          {{- end }}
          - {name: tmp, mountPath: /tmp}
          {{- if .Values.data.claim }}
          - {name: data, mountPath: /data, readOnly: true}
          {{- end }}
          {{- if .Values.mtls.workers }}
          - {name: certs, mountPath: /certs, readOnly: true}
          {{- end }}
    volumes:
      {{- if eq .Values.mode "training" }}
      - name: state
        persistentVolumeClaim: {claimName: {{ .Release.Name }}-state}
      {{- end }}
      - name: tmp
        emptyDir: {}
      {{- if .Values.data.claim }}
      - name: data
        persistentVolumeClaim: {claimName: {{ .Values.data.claim }}, readOnly: true}
      {{- end }}
      {{- if .Values.mtls.workers }}
      - name: certs
        secret: {secretName: {{ .Values.mtls.workers }}, defaultMode: 0440}
      {{- end }}
{{- end }}

{{- define "slipstream.claim" -}}
{{- if .Values.storage.class -}}
storageClassName: {{ .Values.storage.class }}
{{ end -}}
accessModes: [{{ if eq .Values.mode "training" }}ReadWriteMany{{ else }}ReadWriteOnce{{ end }}]
resources: {requests: {storage: {{ .Values.storage.size }}}}
{{- end }}
