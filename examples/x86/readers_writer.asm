; Two functions: any number of readers, which count themselves in, and one writer, which waits until nobody is left.
; expect: sc holds, tso holds, pso holds

begin shared_data
    writing dd 0
    readers dd 0 ! as counter
end shared_data
begin unsafe_prop
    eip[$r] = reading && eip[$w] = writes
end unsafe_prop
begin thread_code reader
enter:   lock inc dword [readers]
         cmp dword [writing], 0
         je reading
         lock dec dword [readers]
         jmp enter
reading: lock dec dword [readers]
         jmp enter
end thread_code
begin thread_code writer 1
come:    mov eax, 1
         xchg dword [writing], eax
drain:   cmp dword [readers], 0
         jne drain
writes:  mov dword [writing], 0
         jmp come
end thread_code
