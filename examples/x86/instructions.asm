; What instructions leave in registers, memory and flags, as the processor does it: nothing of this may be wrong.
; source: Intel 64 and IA-32 architectures, software developer's manual, volume 2
; expect: sc holds, tso holds, pso holds

begin shared_data
    x dd 0x80F1
    y dq 0x1122334455667788
    a dd 5, 6, 7, 8
    b times 3 db 1
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    mov ecx, 2
    mov dword [a + ecx*4], 70
    start_threads
end init_code
begin thread_code
; widening
    mov ecx, 0
    movzx eax, byte [x]
    cmp eax, 0xF1
    jne bad
    movsx eax, byte [x]
    cmp eax, -15
    jne bad
    movsx eax, word [x]
    cmp eax, 0xFFFF80F1
    jne bad
    mov ebx, 0x12345680
    movsx cx, bl
    cmp cx, -128
    jne bad
    mov rax, -1
    mov eax, 1
    cmp rax, 1
    jne bad
    movsxd rax, dword [x]
    cmp rax, 0x80F1
    jne bad
    mov eax, 0x80000000
    cdqe
    cmp rax, -2147483648
    jne bad
    cqo
    cmp rdx, -1
    jne bad
; shifts, with what falls out
    mov eax, 0x80000001
    shl eax, 1
    jnc bad
    jno bad
    cmp eax, 2
    jne bad
    mov eax, -8
    sar eax, 1
    jc bad
    cmp eax, -4
    jne bad
    mov eax, -8
    mov cl, 28
    shr eax, cl
    cmp eax, 15
    jne bad
    mov al, 0x81
    rol al, 4
    cmp al, 0x18
    jne bad
    mov rbx, qword [y]
    shr rbx, 32
    cmp rbx, 0x11223344
    jne bad
; carry
    mov eax, -1
    mov edx, 7
    add eax, 1
    adc edx, 0
    cmp edx, 8
    jne bad
    mov eax, 0
    sub eax, 1
    sbb edx, edx
    cmp edx, -1
    jne bad
; bits
    mov eax, 4
    bts eax, 0
    jc bad
    btr eax, 2
    jnc bad
    cmp eax, 1
    jne bad
    mov ecx, 33
    bt eax, ecx
    jc bad
    btc eax, 0
    jnc bad
    cmp eax, 0
    jne bad
; products
    mov eax, 0x10000
    mov ecx, 0x10000
    mul ecx
    cmp edx, 1
    jne bad
    imul eax, ecx, -3
    cmp eax, -196608
    jne bad
; addresses
    mov eax, 2
    mov ebx, dword [a + eax*4]
    cmp ebx, 70
    jne bad
    mov ebx, dword [a + 4*eax + 4]
    cmp ebx, 8
    jne bad
    mov ebx, dword [a + 4]
    cmp ebx, 6
    jne bad
    mov rcx, 8
    cmp dword [a + rcx - 8], 5
    jne bad
    movzx ebx, byte [b + eax]
    cmp ebx, 1
    jne bad
    rep nop
    jmp good
bad: nop
good: nop
end thread_code
